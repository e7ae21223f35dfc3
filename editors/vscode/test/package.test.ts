import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { test } from "node:test";

test("the package has the program and what is read about it, and nothing else", () => {
  const vsce = ["node_modules/@vscode/vsce/vsce", "ls", "--no-dependencies"];
  const listed = execFileSync(process.execPath, vsce, { encoding: "utf8" }).trim().split("\n");
  const built = listed.filter((path) => !path.startsWith("dist/"));
  assert.deepEqual(built.sort(), ["CHANGELOG.md", "LICENSE", "README.md", "icon.png", "package.json"]);
  assert.ok(listed.every((path) => !path.startsWith("dist/") || path === "dist/extension.js"));
});

test("the lock file names no machine to fetch from", () => {
  assert.doesNotMatch(readFileSync("package-lock.json", "utf8"), /"resolved"/);
});

test("the page about the extension has every setting and every command", () => {
  const { commands, configuration } = JSON.parse(readFileSync("package.json", "utf8")).contributes;
  const readme = readFileSync("README.md", "utf8");
  for (const name of Object.keys(configuration.properties)) {
    assert.ok(readme.includes(`\`${name}\``), name);
  }
  for (const { title } of commands) {
    assert.ok(readme.includes(`gpulint: ${title}`), title);
  }
});
