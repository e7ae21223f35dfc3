/** The running server: started, told of changed settings, asked about lines and fixes, stopped. */

import * as vscode from "vscode";
import {
  type CodeAction,
  CodeActionRequest,
  CodeActionResolveRequest,
  DidChangeConfigurationNotification,
  ExecuteCommandRequest,
  LanguageClient,
  type LanguageClientOptions,
  RevealOutputChannelOn,
} from "vscode-languageclient/node";
import type { Program } from "./program";
import { type Settings, serverOptions } from "./settings";

export const SELECTOR = [
  { scheme: "file", language: "python" },
  { scheme: "untitled", language: "python" },
  { notebook: "jupyter-notebook", language: "python" },
  { scheme: "file", language: "shellscript" },
  { scheme: "file", language: "dockerfile" },
  { scheme: "file", pattern: "**/{.env,.env.*,*.env}" },
];
const EXPLAIN = "gpulint.server.explainLine";

export class Server {
  private readonly client: LanguageClient;

  constructor(
    readonly program: Program,
    settings: Settings,
    log: vscode.LogOutputChannel,
  ) {
    const options: LanguageClientOptions = {
      documentSelector: SELECTOR,
      initializationOptions: serverOptions(settings),
      outputChannel: log,
      revealOutputChannelOn: RevealOutputChannelOn.Never,
      diagnosticCollectionName: "gpulint",
      initializationFailedHandler: () => false, // told by whoever starts
    };
    const run = { command: program.command, args: [...program.args] }; // over standard input and output
    this.client = new LanguageClient("gpulint", "gpulint", run, options);
  }

  /** The version that the server gives for itself. */
  get version(): string {
    return this.client.initializeResult?.serverInfo?.version ?? "";
  }

  async start(): Promise<void> {
    await this.client.start();
  }

  async stop(): Promise<void> {
    await this.client.dispose();
  }

  async configure(settings: Settings): Promise<void> {
    await this.client.sendNotification(DidChangeConfigurationNotification.type, {
      settings: { gpulint: serverOptions(settings) },
    });
  }

  /** Markdown about a line, counted from 0; empty where the server does not check the document. */
  async explain(document: vscode.TextDocument, row: number): Promise<string> {
    const uri = this.client.code2ProtocolConverter.asUri(document.uri);
    const told = await this.client.sendRequest(ExecuteCommandRequest.type, { command: EXPLAIN, arguments: [uri, row] });
    return typeof told === "string" ? told : "";
  }

  /** Applies every fix in a document, or in the notebook that a cell is part of; whether there was one. */
  async fixAll(document: vscode.TextDocument): Promise<boolean> {
    const inNotebook = document.uri.scheme === "vscode-notebook-cell";
    const kind = inNotebook ? "notebook.source.fixAll.gpulint" : "source.fixAll.gpulint";
    const start = { line: 0, character: 0 };
    const offered = await this.client.sendRequest(CodeActionRequest.type, {
      textDocument: this.client.code2ProtocolConverter.asTextDocumentIdentifier(document),
      range: { start, end: start },
      context: { diagnostics: [], only: [kind] },
    });
    const action = (offered ?? []).find((one): one is CodeAction => "kind" in one && one.kind === kind);
    if (action === undefined) {
      return false;
    }
    const whole = action.edit ? action : await this.client.sendRequest(CodeActionResolveRequest.type, action);
    const edit = await this.client.protocol2CodeConverter.asWorkspaceEdit(whole.edit);
    return edit !== undefined && (await vscode.workspace.applyEdit(edit));
  }
}
