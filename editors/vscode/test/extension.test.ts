/** The extension with the real language client and the real server: `PYTHON` names an interpreter that has both. */

import assert from "node:assert/strict";
import { chmodSync, existsSync, mkdtempSync, realpathSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { afterEach, test } from "node:test";
import * as vscode from "vscode";
import { activate, deactivate } from "../src/extension";

const { fake } = vscode as any;

const ours = resolve("../../.venv/bin/python");
const python = process.env.PYTHON ?? (existsSync(ours) ? ours : "python3");
const folder = realpathSync(mkdtempSync(join(tmpdir(), "gpulint-")));
const HELD = `import torch
from torch import nn


def train(model: nn.Module, loader, criterion, optimizer):
    total = 0.0
    for x, y in loader:
        optimizer.zero_grad()
        loss = criterion(model(x.cuda()), y.cuda())
        loss.backward()
        optimizer.step()
        total += loss
    return total
`;
const ROW = 11;
let count = 0;

const context = () => ({ subscriptions: [] }) as unknown as vscode.ExtensionContext;
const status = () => fake.statuses.at(-1) as vscode.LanguageStatusItem;

function opened(text = HELD): vscode.TextDocument {
  count += 1;
  const path = join(folder, `train${count}.py`);
  writeFileSync(path, text);
  return fake.open(path, "python", text);
}

async function until<T>(what: () => T | undefined | false): Promise<T> {
  for (let waited = 0; waited < 20_000; waited += 50) {
    const found = what();
    if (found) {
      return found;
    }
    await new Promise((go) => setTimeout(go, 50));
  }
  throw new Error(`waited in vain; the log: ${fake.log.join("\n")} ${JSON.stringify([...fake.diagnostics])}`);
}

const findings = (document: vscode.TextDocument, code: string) =>
  until<vscode.Diagnostic[]>(() => {
    const found: vscode.Diagnostic[] = fake.diagnostics.get(document.uri.toString()) ?? [];
    return found.some((one) => codeOf(one) === code) && found;
  });
const codeOf = (one: vscode.Diagnostic) => (typeof one.code === "object" ? one.code.value : one.code);

afterEach(async () => {
  await deactivate();
  fake.dispose();
});

test("findings, with the reason as related information", async () => {
  fake.settings = { interpreter: [python] };
  await activate(context());
  assert.match(status().text, /^gpulint \d/);
  assert.equal(status().severity, vscode.LanguageStatusSeverity.Information);
  const document = opened();
  const [found] = await findings(document, "GPU101");
  assert.equal(found?.range.start.line, ROW);
  assert.equal(found?.source, "gpulint");
  assert.match(found?.relatedInformation?.[0]?.message ?? "", /^reason: /);
  const code = found?.code as { target: vscode.Uri };
  assert.match(code.target.toString(), /rules\/GPU101$/);
});

test("fix all, then nothing is left to fix", async () => {
  fake.settings = { interpreter: [python] };
  await activate(context());
  const document = opened();
  await fake.run("gpulint.fixAll");
  assert.match(document.getText(), /total \+= loss\.detach\(\)|total \+= loss\.item\(\)/);
  await fake.run("gpulint.fixAll");
  assert.deepEqual(fake.messages.map((one: { message: string }) => one.message), ["gpulint has no safe fixes for this file."]);
});

test("a line is explained beside the code", async () => {
  fake.settings = { interpreter: [python] };
  await activate(context());
  opened();
  fake.visible.selection = new vscode.Selection(new vscode.Position(ROW, 0), new vscode.Position(ROW, 0));
  await fake.run("gpulint.explainLine");
  const [, uri] = fake.executed.find(([name]: [string]) => name === "markdown.showPreviewToSide");
  const told = fake.contents.get(uri.scheme).provideTextDocumentContent(uri);
  assert.match(told, /# Line 12/);
  assert.match(told, /\*\*GPU101\*\*/);
  assert.match(told, /\*graph\* yes/);
});

test("a changed setting reaches the running server", async () => {
  fake.settings = { interpreter: [python] };
  await activate(context());
  const document = opened(HELD.replace("total += loss\n", "total += loss\n        torch.cuda.empty_cache()\n"));
  await findings(document, "GPU501");
  const server = status();
  await fake.configure({ interpreter: [python], ignore: ["GPU1"] });
  await fake.run("gpulint.fixAll");
  assert.doesNotMatch(document.getText(), /empty_cache/);
  assert.match(document.getText(), /total \+= loss\n/, "GPU101 is ignored now, so it is not fixed");
  assert.equal(status(), server);
});

test("off, and on again", async () => {
  fake.settings = { interpreter: [python], enable: false };
  await activate(context());
  assert.equal(status().text, "gpulint is off");
  await fake.configure({ interpreter: [python] });
  assert.match(status().text, /^gpulint \d/);
  await fake.run("gpulint.restart");
  assert.match(status().text, /^gpulint \d/);
});

test("without the language server the message says what to do", async () => {
  const bare = join(folder, "python-without-pygls");
  writeFileSync(bare, "#!/bin/sh\necho \"gpulint: the language server needs pygls 2\" >&2\nexit 2\n");
  chmodSync(bare, 0o755);
  fake.settings = { interpreter: [bare] };
  fake.answers = ["Install in Terminal"];
  await activate(context());
  assert.equal(status().severity, vscode.LanguageStatusSeverity.Error);
  const [{ level, message, offers }] = fake.messages;
  assert.equal(level, "error");
  assert.match(message, /without its language server .*-m pip install "gpulint\[server\]"/);
  assert.deepEqual(offers, ["Install in Terminal", "Open Settings"]);
  await until(() => fake.terminals.length === 1);
  assert.deepEqual(fake.terminals[0].typed, [[`${bare} -m pip install "gpulint[server]"`, false]]);
  await fake.run("gpulint.explainLine");
  assert.match(fake.messages.at(-1).message, /not running/);
});
