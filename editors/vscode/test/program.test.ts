import assert from "node:assert/strict";
import { chmodSync, mkdirSync, mkdtempSync, writeFileSync } from "node:fs";
import { homedir, tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { candidates, check, firstWorking, installCommand, type Program, sentence } from "../src/program";
import type { Settings } from "../src/settings";

const none: Settings = {
  enable: true, path: [], interpreter: [], select: null, ignore: [], confidence: null, unsafeFixes: false,
};
const folder = mkdtempSync(join(tmpdir(), "gpulint-"));

function script(name: string, lines: string): Program {
  const path = join(folder, name);
  writeFileSync(path, `#!/bin/sh\n${lines}\n`);
  chmodSync(path, 0o755);
  return { command: path, args: ["server"] };
}

test("what is set is not replaced by a guess", () => {
  const settings = { ...none, path: ["~/bin/gpulint", "${workspaceFolder}/tools/gpulint"], interpreter: ["/opt/python"] };
  assert.deepEqual(candidates(settings, { folders: ["/project"], chosen: "/usr/bin/python3" }), [
    { command: `${homedir()}/bin/gpulint`, args: ["server"] },
    { command: "/project/tools/gpulint", args: ["server"] },
    { command: "/opt/python", args: ["-I", "-m", "gpulint", "server"], python: "/opt/python" },
  ]);
});

test("the command beside an interpreter rather than its module", () => {
  const python = join(folder, "environment/bin/python");
  mkdirSync(join(folder, "environment/bin"), { recursive: true });
  writeFileSync(join(folder, "environment/bin/gpulint"), "");
  const found = candidates({ ...none, interpreter: [python] }, { folders: [] });
  assert.deepEqual(found, [{ command: join(folder, "environment/bin/gpulint"), args: ["server"], python }]);
});

test("otherwise the chosen interpreter, the workspace's environment, the PATH", () => {
  const project = join(folder, "project");
  const python = join(project, ".venv/bin/python");
  mkdirSync(join(project, ".venv/bin"), { recursive: true });
  writeFileSync(python, "");
  const found = candidates(none, { folders: [project], chosen: "/usr/bin/python3" }).map((one) => one.command);
  assert.deepEqual(found, ["/usr/bin/python3", python, "gpulint"]);
  const same = candidates(none, { folders: [project], chosen: python }).map((one) => one.command);
  assert.deepEqual(same, [python, "gpulint"]);
});

test("a program that is not there", async () => {
  const problem = await check({ command: join(folder, "nothing"), args: ["server"] });
  assert.equal(problem?.kind, "absent");
  assert.match(sentence(problem), /no program .*nothing, which the setting gpulint.path names/);
});

test("an interpreter without gpulint", async () => {
  const absent = { ...script("bare", "echo \"$0: No module named gpulint\" >&2; exit 1"), python: "/env/my python" };
  const problem = await check(absent);
  assert.equal(problem?.kind, "absent");
  assert.equal(installCommand(problem), '"/env/my python" -m pip install "gpulint[server]"');
  assert.match(sentence(problem), /not installed for \/env\/my python.*gpulint\[server\]/);
});

test("gpulint without its language server", async () => {
  const problem = await check(script("small", "echo 'gpulint: the language server needs pygls 2' >&2; exit 2"));
  assert.equal(problem?.kind, "without server");
  assert.match(sentence(problem), /without its language server .*pip install "gpulint\[server\]"/);
});

test("a gpulint that fails keeps what it said", async () => {
  const problem = await check(script("broken", "echo 'Traceback (most recent' >&2; echo 'KeyError: 1' >&2; exit 1"));
  assert.ok(problem?.kind === "broken");
  assert.match(sentence(problem), /does not start.*KeyError: 1/);
});

test("the problem nearest to being solved is told", async () => {
  const absent = { command: join(folder, "nothing"), args: ["server"] };
  const found = await firstWorking([absent, script("small", "echo needs pygls >&2; exit 2"), absent]);
  assert.ok("kind" in found && found.kind === "without server");
  const works = script("good", "exit 1"); // as the server ends without a client
  assert.equal(await firstWorking([absent, works]), works);
});
