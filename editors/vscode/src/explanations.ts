/** Explanations of lines as documents that nobody saves, shown as rendered Markdown beside the code. */

import * as vscode from "vscode";

const SCHEME = "gpulint-explanation";

export class Explanations implements vscode.TextDocumentContentProvider {
  private readonly texts = new Map<string, string>();
  private readonly changed = new vscode.EventEmitter<vscode.Uri>();
  readonly onDidChange = this.changed.event;

  register(): vscode.Disposable {
    return vscode.workspace.registerTextDocumentContentProvider(SCHEME, this);
  }

  provideTextDocumentContent(uri: vscode.Uri): string {
    return this.texts.get(uri.path) ?? "";
  }

  async show(markdown: string): Promise<void> {
    const uri = vscode.Uri.from({ scheme: SCHEME, path: "gpulint explain.md" });
    this.texts.set(uri.path, markdown);
    this.changed.fire(uri);
    await vscode.commands.executeCommand("markdown.showPreviewToSide", uri);
  }
}
