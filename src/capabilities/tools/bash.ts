import { existsSync } from "node:fs";
import { Fault, type JsonObject, type Tool } from "../../kernel/index.ts";
import { FileRoot } from "../files/file-root.ts";
import { Sandbox } from "../sandbox/sandbox.ts";
import type { SandboxMode, SandboxPolicy, SandboxReport } from "../sandbox/sandbox-policy.ts";
import { OutputWindow } from "./output-window.ts";
import { runGroup, type ProcessEnd } from "./process-group.ts";
import { tool } from "./tool.ts";

export interface BashToolOptions {
  /** Commands start here or below. Only a sandbox keeps them there. */
  readonly root: string;
  /** `warn` unless told. */
  readonly sandbox?: SandboxMode | SandboxPolicy;
  /** Unless the call says less. */
  readonly timeoutMs?: number;
  /** Of output that is kept: half from the beginning, half from the end. */
  readonly maxOutputBytes?: number;
  readonly graceMs?: number;
  /** Variables of this process that commands see, besides the usual harmless ones. */
  readonly inheritEnv?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
}

const input = {
  type: "object",
  properties: {
    command: { type: "string", minLength: 1, description: "What the shell is to run" },
    cwd: {
      type: "string",
      description: "The folder to start in, from the workspace root; the root unless told",
    },
    timeoutMs: { type: "integer", minimum: 1, description: "Stop it after so many milliseconds" },
  },
  required: ["command"],
  additionalProperties: false,
} as const;

/** Not keys, tokens or addresses of services: those are named, if a command is to have them. */
const harmless = ["PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ", "TMPDIR"];

/** Runs shell commands. Each is a process group that ends with the call. */
export function bashTool(options: BashToolOptions): Tool {
  const { timeoutMs = 120_000, maxOutputBytes = 32_768, graceMs = 2_000 } = options;
  const { sandbox: wanted = "warn", inheritEnv = [], env: given = {} } = options;
  const root = new FileRoot(options.root);
  const sandbox = new Sandbox(typeof wanted === "string" ? { mode: wanted } : wanted);
  const isHeld = sandbox.policy.mode === "enforce";

  return tool({
    name: "bash",
    description: `Runs a shell command in the workspace, without input, for up to ${timeoutMs} ms. Processes it leaves in the background end with it. Output over ${maxOutputBytes} bytes is cut in the middle.`,
    inputSchema: input,
    risk: isHeld ? "high" : "critical",
    destructive: true,
    concurrency: "sequential",
    // Its own clock stops the command first, so that what it said so far is kept.
    timeoutMs: timeoutMs + graceMs + 30_000,
    execute: async ({ command, cwd = ".", timeoutMs: asked = timeoutMs }, { signal, idempotencyKey }) => {
      if (command.includes("\0")) throw new Fault("invalid_argument", "a command may not hold a zero byte");
      const folder = await root.folder(cwd);
      try {
        const env = { ...environment(inheritEnv), ...given, REEVE_IDEMPOTENCY_KEY: idempotencyKey };
        const workspace = await root.path();
        const { prefix, report } = await sandbox.wrap({ workspace, cwd: folder.path, env });
        const [program, ...args] = [...prefix, shell(), "-c", command];
        const output = new OutputWindow(maxOutputBytes);
        const limit = Math.min(asked, timeoutMs);
        const startedAt = performance.now();
        const end = await runGroup({
          program,
          args,
          // Through the descriptor: the folder that was checked, whatever its path leads to now.
          cwd: folder.here,
          env,
          timeoutMs: limit,
          graceMs,
          signal,
          onOutput: (chunk) => output.add(chunk),
        });
        const isError = end.isTimedOut || end.exitCode !== 0;
        const metadata: JsonObject = {
          command,
          cwd: await root.shown(folder.path),
          ...end,
          durationMs: Math.round(performance.now() - startedAt),
          outputBytes: output.total,
          cutBytes: output.cut,
          sandbox: { ...report },
        };
        const text = [output.text().trimEnd(), ...notes(end, limit, report)].filter(Boolean).join("\n");
        return { output: { type: "text", text: text || "[no output]" }, isError, metadata };
      } finally {
        await folder.close();
      }
    },
  });
}

function notes(
  { exitCode, killedBy, isTimedOut }: ProcessEnd,
  limitMs: number,
  report: SandboxReport,
): string[] {
  const said: string[] = [];
  if (isTimedOut) said.push(`[stopped: it took longer than ${limitMs} ms]`);
  else if (killedBy !== null) said.push(`[killed by ${killedBy}]`);
  else if (exitCode !== 0) said.push(`[exit code ${exitCode}]`);
  if (report.warning !== undefined) said.push(`[run without a sandbox: ${report.warning}]`);
  return said;
}

function environment(names: readonly string[]): Record<string, string> {
  const env: Record<string, string> = { TERM: "dumb", NO_COLOR: "1", PAGER: "cat", GIT_TERMINAL_PROMPT: "0" };
  for (const [name, value] of Object.entries(process.env)) {
    const isWanted = harmless.includes(name) || name.startsWith("LC_") || names.includes(name);
    if (isWanted && value !== undefined) env[name] = value;
  }
  return env;
}

/** bash where it is; else the shell that every system has. */
function shell(): string {
  return existsSync("/bin/bash") ? "/bin/bash" : "/bin/sh";
}
