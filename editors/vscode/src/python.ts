/** The interpreter that the Python extension has chosen, where that extension is installed. */

import * as vscode from "vscode";

/** What is used of its public interface (`@vscode/python-extension`). */
interface PythonExtension {
  readonly environments: {
    getActiveEnvironmentPath(resource?: vscode.Uri): { readonly path: string };
    resolveEnvironment(path: {
      readonly path: string;
    }): Promise<{ readonly executable: { readonly uri?: vscode.Uri } } | undefined>;
    readonly onDidChangeActiveEnvironmentPath: vscode.Event<unknown>;
  };
}

async function extension(): Promise<PythonExtension | undefined> {
  const found = vscode.extensions.getExtension<PythonExtension>("ms-python.python");
  const api = found && (await found.activate());
  return api?.environments === undefined ? undefined : api;
}

export async function chosenInterpreter(log: (line: string) => void): Promise<string | undefined> {
  try {
    const environments = (await extension())?.environments;
    const active = environments?.getActiveEnvironmentPath(vscode.workspace.workspaceFolders?.[0]?.uri);
    return active && (await environments?.resolveEnvironment(active))?.executable.uri?.fsPath;
  } catch (error) {
    log(`the Python extension named no interpreter: ${error}`);
    return undefined;
  }
}

export async function onChosenInterpreter(changed: () => void): Promise<vscode.Disposable | undefined> {
  try {
    return (await extension())?.environments.onDidChangeActiveEnvironmentPath(changed);
  } catch {
    return undefined;
  }
}
