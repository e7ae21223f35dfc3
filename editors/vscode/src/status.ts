/** The item beside the language's name in the status bar: what the server is doing, and a way to act on it. */

import * as vscode from "vscode";
import { SELECTOR } from "./server";

export class Status {
  private readonly item: vscode.LanguageStatusItem;

  constructor() {
    this.item = vscode.languages.createLanguageStatusItem("gpulint", SELECTOR);
    this.item.name = "gpulint";
    this.starting();
  }

  starting(): void {
    this.show("gpulint is starting", "", vscode.LanguageStatusSeverity.Information, true);
  }

  running(version: string, program: string): void {
    const command = { title: "Restart", command: "gpulint.restart" };
    this.show(`gpulint ${version}`, program, vscode.LanguageStatusSeverity.Information, false, command);
  }

  off(): void {
    this.show("gpulint is off", "the setting gpulint.enable", vscode.LanguageStatusSeverity.Information, false);
  }

  failed(problem: string): void {
    const command = { title: "Show Log", command: "gpulint.showLog" };
    this.show("gpulint does not run", problem, vscode.LanguageStatusSeverity.Error, false, command);
  }

  dispose(): void {
    this.item.dispose();
  }

  private show(
    text: string,
    detail: string,
    severity: vscode.LanguageStatusSeverity,
    busy: boolean,
    command?: vscode.Command,
  ): void {
    Object.assign(this.item, { text, detail, severity, busy, command });
  }
}
