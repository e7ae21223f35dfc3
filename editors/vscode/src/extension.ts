/** What VS Code calls: starts the server, keeps it in step with the settings, and offers the commands. */

import * as vscode from "vscode";
import { Explanations } from "./explanations";
import { candidates, firstWorking, installCommand, type Problem, sentence } from "./program";
import { chosenInterpreter, onChosenInterpreter } from "./python";
import { Server } from "./server";
import { readSettings, STARTING } from "./settings";
import { Status } from "./status";

let extension: Extension | undefined;

export async function activate(context: vscode.ExtensionContext): Promise<void> {
  extension = new Extension(context);
  await extension.restart();
}

export async function deactivate(): Promise<void> {
  await extension?.stop();
  extension = undefined;
}

class Extension {
  private readonly log = vscode.window.createOutputChannel("gpulint", { log: true });
  private readonly status = new Status();
  private readonly explanations = new Explanations();
  private server: Server | undefined;
  /** Starting and stopping, one after another. */
  private turn: Promise<void> = Promise.resolve();

  constructor(context: vscode.ExtensionContext) {
    const command = (name: string, run: () => unknown) => vscode.commands.registerCommand(`gpulint.${name}`, run);
    context.subscriptions.push(
      this.log,
      this.status,
      this.explanations.register(),
      command("restart", () => this.restart()),
      command("explainLine", () => this.explainLine()),
      command("fixAll", () => this.fixAll()),
      command("showLog", () => this.log.show()),
      vscode.workspace.onDidChangeConfiguration((event) => this.configured(event)),
    );
    void onChosenInterpreter(() => void this.restart()).then((listener) => {
      if (listener !== undefined) {
        context.subscriptions.push(listener);
      }
    });
  }

  restart(): Promise<void> {
    this.turn = this.turn.then(() => this.stopped()).then(() => this.started());
    return this.turn;
  }

  stop(): Promise<void> {
    this.turn = this.turn.then(() => this.stopped());
    return this.turn;
  }

  private async started(): Promise<void> {
    const settings = readSettings(vscode.workspace.getConfiguration("gpulint"));
    if (!settings.enable) {
      this.status.off();
      return;
    }
    this.status.starting();
    const folders = (vscode.workspace.workspaceFolders ?? []).map((folder) => folder.uri.fsPath);
    const chosen = await chosenInterpreter((line) => this.log.warn(line));
    const found = await firstWorking(candidates(settings, { folders, chosen }), folders[0]);
    if ("kind" in found) {
      this.fail(found);
      return;
    }
    const line = [found.command, ...found.args].join(" ");
    this.log.info(`starting ${line}`);
    const server = new Server(found, settings, this.log);
    try {
      await server.start();
    } catch (error) {
      await server.stop().catch(() => undefined); // it would start itself again
      this.fail({ kind: "broken", program: found, output: String(error) });
      return;
    }
    this.server = server;
    this.status.running(server.version, line);
    await vscode.commands.executeCommand("setContext", "gpulint.running", true);
  }

  private async stopped(): Promise<void> {
    const server = this.server;
    this.server = undefined;
    await vscode.commands.executeCommand("setContext", "gpulint.running", false);
    await server?.stop().catch((error) => this.log.error(`the server did not end well: ${error}`));
  }

  /** Says what is wrong and offers what can be done; waits for no answer. */
  private fail(problem: Problem): void {
    const told = sentence(problem);
    this.log.error(told);
    if (problem.kind === "broken") {
      this.log.error(problem.output);
    }
    this.status.failed(told);
    const install = "Install in Terminal";
    const settings = "Open Settings";
    const log = "Show Log";
    const offers = problem.kind === "broken" ? [log, settings] : [install, settings];
    void vscode.window.showErrorMessage(told, ...offers).then((taken) => {
      if (taken === install) {
        const terminal = vscode.window.createTerminal("gpulint");
        terminal.show();
        terminal.sendText(installCommand(problem), false); // to be read first, and run by the user
      } else if (taken === settings) {
        void vscode.commands.executeCommand("workbench.action.openSettings", "gpulint.");
      } else if (taken === log) {
        this.log.show();
      }
    });
  }

  private async configured(event: vscode.ConfigurationChangeEvent): Promise<void> {
    if (STARTING.some((key) => event.affectsConfiguration(key))) {
      await this.restart();
    } else if (event.affectsConfiguration("gpulint")) {
      await this.server?.configure(readSettings(vscode.workspace.getConfiguration("gpulint")));
    }
  }

  private async explainLine(): Promise<void> {
    const editor = vscode.window.activeTextEditor;
    const server = this.ready();
    if (editor === undefined || server === undefined) {
      return;
    }
    const told = await server.explain(editor.document, editor.selection.active.line);
    if (told === "") {
      void vscode.window.showInformationMessage("gpulint does not check this document.");
      return;
    }
    await this.explanations.show(told);
  }

  private async fixAll(): Promise<void> {
    const editor = vscode.window.activeTextEditor;
    const server = this.ready();
    if (editor === undefined || server === undefined) {
      return;
    }
    if (!(await server.fixAll(editor.document))) {
      const { unsafeFixes } = readSettings(vscode.workspace.getConfiguration("gpulint"));
      const which = unsafeFixes ? "no fixes" : "no safe fixes";
      void vscode.window.showInformationMessage(`gpulint has ${which} for this file.`);
    }
  }

  private ready(): Server | undefined {
    if (this.server === undefined) {
      void vscode.window.showWarningMessage("gpulint is not running. Its log says why; the command Restart Server tries again.");
    }
    return this.server;
  }
}
