#!/usr/bin/env node
import { logRejections } from "./log-rejections.ts";
import { runCommandLine } from "./program.ts";
import { processTerminal } from "./terminal.ts";

const terminal = processTerminal();
logRejections(terminal);
process.exitCode = await runCommandLine(process.argv.slice(2), terminal);
