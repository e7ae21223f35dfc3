/** Which program is the server, and what to do where there is none. */

import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { homedir } from "node:os";
import { dirname, join } from "node:path";
import type { Settings } from "./settings";

export interface Program {
  readonly command: string;
  readonly args: readonly string[];
  /** The interpreter that it runs in, where that is known. */
  readonly python?: string;
}

export type Problem =
  | { readonly kind: "absent"; readonly program: Program }
  | { readonly kind: "without server"; readonly program: Program }
  | { readonly kind: "broken"; readonly program: Program; readonly output: string };

export interface Surroundings {
  readonly folders: readonly string[];
  /** The interpreter that the Python extension has chosen. */
  readonly chosen?: string;
}

const SECONDS = 30;

/** The programs that may be the server, best first. What the user has set is not replaced by a guess. */
export function candidates(settings: Settings, around: Surroundings): Program[] {
  const filled = (path: string) => fill(path, around.folders);
  const set = [...settings.path.map(filled).map(asCommand), ...settings.interpreter.map(filled).map(asModule)];
  if (set.length > 0) {
    return set;
  }
  const pythons = around.chosen === undefined ? [] : [around.chosen];
  for (const folder of around.folders) {
    pythons.push(...[".venv", "venv"].map((name) => interpreterOf(join(folder, name))).filter(existsSync));
  }
  return [...[...new Set(pythons)].map(asModule), asCommand("gpulint")];
}

function asCommand(command: string): Program {
  return { command, args: ["server"] };
}

/** The command beside an interpreter. Otherwise its module, where Python must be told (-I) not to run what lies in the workspace. */
function asModule(python: string): Program {
  const command = process.platform === "win32" ? "gpulint.exe" : "gpulint";
  const beside = [command, join("Scripts", command)].map((name) => join(dirname(python), name)).find(existsSync);
  return beside === undefined
    ? { command: python, args: ["-I", "-m", "gpulint", "server"], python }
    : { command: beside, args: ["server"], python };
}

function interpreterOf(environment: string): string {
  return process.platform === "win32" ? join(environment, "Scripts", "python.exe") : join(environment, "bin", "python");
}

function fill(path: string, folders: readonly string[]): string {
  const home = path === "~" || path.startsWith("~/") || path.startsWith("~\\") ? homedir() + path.slice(1) : path;
  return home.replaceAll("${workspaceFolder}", folders[0] ?? "").replaceAll("${userHome}", homedir());
}

/** The first program that works, or why none does: the problem that is nearest to being solved. */
export async function firstWorking(programs: readonly Program[], cwd?: string): Promise<Program | Problem> {
  const problems: Problem[] = [];
  for (const program of programs) {
    const problem = await check(program, cwd);
    if (problem === undefined) {
      return program;
    }
    problems.push(problem);
  }
  const near = problems.find((one) => one.kind === "without server") ?? problems.find((one) => one.kind === "broken");
  return near ?? problems[0] ?? { kind: "absent", program: asCommand("gpulint") };
}

/** Starts the server with nothing to read: it ends at once, with status 2 where it cannot run at all. */
export async function check(program: Program, cwd?: string): Promise<Problem | undefined> {
  return new Promise((resolve) => {
    let output = "";
    const child = spawn(program.command, program.args, { cwd, stdio: ["ignore", "ignore", "pipe"], windowsHide: true });
    const late = setTimeout(() => child.kill(), SECONDS * 1000);
    child.stderr.on("data", (data) => (output += String(data)));
    child.on("error", () => {
      clearTimeout(late);
      resolve({ kind: "absent", program });
    });
    child.on("close", (status) => {
      clearTimeout(late);
      resolve(judge(program, status, output));
    });
  });
}

/** 0 and 1 are how the server ends without and with a client that went without a word. */
export function judge(program: Program, status: number | null, output: string): Problem | undefined {
  if (/No module named '?gpulint\b/.test(output)) {
    return { kind: "absent", program };
  }
  if (/needs pygls/.test(output)) {
    return { kind: "without server", program };
  }
  if (status === 0 || (status === 1 && !output.includes("Traceback"))) {
    return undefined;
  }
  const said = status === null ? `no end after ${SECONDS} s\n${output}` : output;
  return { kind: "broken", program, output: said.trim() || `exit status ${status}` };
}

/** The command that installs what is missing, for the shell of a terminal. */
export function installCommand(problem: Problem): string {
  const python = problem.program.python ?? "python";
  const quoted = /[^\w./\\:-]/.test(python) ? `"${python}"` : python;
  return `${quoted} -m pip install "gpulint[server]"`;
}

/** What is wrong and what to do, in one or two sentences. */
export function sentence(problem: Problem): string {
  const { python, command } = problem.program;
  const where = python ?? command;
  switch (problem.kind) {
    case "absent":
      return python === undefined && command !== "gpulint"
        ? `There is no program ${command}, which the setting gpulint.path names.`
        : `gpulint is not installed${python ? ` for ${python}` : ", or not where VS Code finds it"}. ` +
            `Install it with: ${installCommand(problem)} - or name the program in the setting gpulint.path.`;
    case "without server":
      return `gpulint is installed without its language server (${where}). Install it with: ${installCommand(problem)}`;
    case "broken":
      return `gpulint does not start (${where}): ${problem.output.split("\n").at(-1)} The log has all of it.`;
  }
}
