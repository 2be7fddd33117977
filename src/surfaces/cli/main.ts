#!/usr/bin/env node
import { unsupportedNode } from "../../assembly/node-version.ts";

// The imports are dynamic, because an unsupported Node may not be able to load the modules.
const problem = unsupportedNode(process.versions.node);
if (problem === undefined) {
  const { logRejections } = await import("./terminal/log-rejections.ts");
  const { runCommandLine } = await import("./program.ts");
  const { processTerminal } = await import("./terminal/process-terminal.ts");
  const terminal = processTerminal();
  logRejections(terminal);
  process.exitCode = await runCommandLine(process.argv.slice(2), terminal);
  await terminal.endAbandoned();
} else {
  process.stderr.write(`${problem}\n`);
  process.exitCode = 1;
}
