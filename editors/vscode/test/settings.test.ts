import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { readSettings, type Section, serverOptions } from "../src/settings";

const manifest = JSON.parse(readFileSync("package.json", "utf8"));
const declared: Record<string, { default: unknown }> = manifest.contributes.configuration.properties;

const section = (given: Record<string, unknown>): Section => ({
  get: <T>(key: string, otherwise: T) => (key in given ? (given[key] as T) : otherwise),
});
const defaults = Object.fromEntries(
  Object.entries(declared).map(([name, { default: value }]) => [name.replace("gpulint.", ""), value]),
);

test("every setting that the manifest declares is read, and no other", () => {
  const read = Object.keys(readSettings(section({})));
  const names = Object.keys(defaults).filter((name) => name !== "trace.server"); // the language client reads it
  assert.deepEqual(read.sort(), names.sort());
});

test("what is not set is left to the project's configuration", () => {
  assert.deepEqual(serverOptions(readSettings(section(defaults))), { ignore: ["GPU000"], unsafeFixes: false });
});

test("what is set is told", () => {
  const given = { select: ["GPU1"], ignore: [], confidence: "low", unsafeFixes: true };
  assert.deepEqual(serverOptions(readSettings(section(given))), given);
});

test("the server's options and the settings are the same, by name", () => {
  const python = readFileSync("../../gpulint/server/options.py", "utf8");
  const known = /_KNOWN: Final = \(([^)]*)\)/.exec(python)?.[1] ?? "";
  const names = [...known.matchAll(/"(\w+)"/g)].map((match) => match[1]);
  const full = { select: ["GPU1"], ignore: [], confidence: "low", unsafeFixes: true };
  assert.deepEqual(Object.keys(serverOptions(readSettings(section(full)))).sort(), names.sort());
});

test("commands of the manifest and of the source are the same", () => {
  const source = readFileSync("src/extension.ts", "utf8");
  const registered = [...source.matchAll(/command\("(\w+)",/g)].map((match) => `gpulint.${match[1]}`);
  const told = manifest.contributes.commands.map((one: { command: string }) => one.command);
  assert.deepEqual(registered.sort(), told.sort());
});
