// The extension as one file, dist/extension.js; with --tests each test as one file in out/, on a stand-in for VS Code.
import { rmSync } from "node:fs";
import { build } from "esbuild";

const tests = process.argv.includes("--tests");
const minify = process.argv.includes("--minify");
rmSync(tests ? "out" : "dist", { recursive: true, force: true });

const common = { bundle: true, platform: "node", format: "cjs", target: "node20", logLevel: "warning" };
await build(
  tests
    ? {
        ...common,
        entryPoints: ["test/settings.test.ts", "test/program.test.ts", "test/extension.test.ts", "test/package.test.ts"],
        outdir: "out",
        alias: { vscode: "./test/vscode.cjs" },
        sourcemap: "inline",
      }
    : {
        ...common,
        entryPoints: ["src/extension.ts"],
        outfile: "dist/extension.js",
        external: ["vscode"],
        minify,
        sourcemap: !minify,
      },
);
