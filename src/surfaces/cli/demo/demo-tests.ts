import { execFile } from "node:child_process";
import type { Tool } from "../../../kernel/index.ts";
import { tool } from "../../../capabilities/index.ts";

/** Creates the tool `test`, which runs the tests of the demo's project with Node. */
export function testsTool(root: string): Tool {
  return tool({
    name: "test",
    description: "Runs the tests of the project.",
    inputSchema: { type: "object", properties: {}, additionalProperties: false },
    timeoutMs: 30_000,
    execute: (_input, { signal }) =>
      new Promise<string>((resolve, reject) => {
        const args = ["--test-reporter=tap", "test/tally.test.js"];
        const options = { cwd: root, signal, env: { ...process.env, NODE_TEST_CONTEXT: "" } };
        execFile(process.execPath, args, options, (error, stdout) => {
          // Exit code 1 means that a test failed, which is a result.
          if (error !== null && error.code !== 1) reject(error);
          else resolve(summary(stdout));
        });
      }),
  });
}

/** The names of the tests that failed, and the counts. */
function summary(tap: string): string {
  const lines = tap.split("\n");
  return lines.filter((line) => /^(?:not ok|# (?:tests|pass|fail)) /u.test(line)).join("\n");
}
