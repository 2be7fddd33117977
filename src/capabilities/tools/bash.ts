import { existsSync } from "node:fs";
import { checkOptions, Fault, optionNames, type JsonObject, type Tool } from "../../kernel/index.ts";
import { FileRoot } from "../files/file-root.ts";
import { Sandbox } from "../sandbox/sandbox.ts";
import type { SandboxMode, SandboxPolicy, SandboxReport } from "../sandbox/sandbox-policy.ts";
import { OutputWindow } from "./output-window.ts";
import { runGroup, type ProcessEnd } from "./process-group.ts";
import { tool } from "./tool.ts";

/** Options of `bashTool()`. */
export interface BashToolOptions {
  /** Folder in which commands start. Commands can leave it unless a sandbox prevents that. */
  readonly root: string;
  /** Sandbox of the commands. Default: `warn`. */
  readonly sandbox?: SandboxMode | SandboxPolicy;
  /** Maximum duration of a command, in milliseconds. A call may ask for less. Default: 120_000. */
  readonly timeoutMs?: number;
  /** Maximum number of bytes of output that are kept, half from the start and half from the end. Default: 32_768. */
  readonly maxOutputBytes?: number;
  /** Milliseconds between SIGTERM and SIGKILL when a command is stopped. Default: 2_000. */
  readonly graceMs?: number;
  /** Names of environment variables of this process that commands see, in addition to harmless ones such as `PATH`. */
  readonly inheritEnv?: readonly string[];
  /** Environment variables that are set for every command. */
  readonly env?: Readonly<Record<string, string>>;
}

const input = {
  type: "object",
  properties: {
    command: { type: "string", minLength: 1, description: "The shell command to run" },
    cwd: {
      type: "string",
      description: "The folder to start in, relative to the workspace root. Default: the root",
    },
    timeoutMs: { type: "integer", minimum: 1, description: "Stop the command after this many milliseconds" },
  },
  required: ["command"],
  additionalProperties: false,
} as const;

/** Variables that every command sees. Keys, tokens and service addresses are passed only if `inheritEnv` names them. */
const harmless = ["PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ", "TMPDIR"];

const knownOptions = optionNames<BashToolOptions>({
  root: true,
  sandbox: true,
  timeoutMs: true,
  maxOutputBytes: true,
  graceMs: true,
  inheritEnv: true,
  env: true,
});

/**
 * Creates the tool `bash`, which runs shell commands. Each command runs in its own process group, which ends with the call.
 *
 * @example
 * ```ts
 * import { Agent } from "reeve";
 * import { bashTool } from "reeve/tools";
 *
 * const agent = new Agent({
 *   name: "builder",
 *   model: "anthropic/claude-sonnet-5",
 *   tools: [bashTool({ root: "./workspace", sandbox: "enforce", timeoutMs: 60_000 })],
 * });
 * ```
 */
export function bashTool(options: BashToolOptions): Tool {
  checkOptions("bashTool()", options, knownOptions);
  const { timeoutMs = 120_000, maxOutputBytes = 32_768, graceMs = 2_000 } = options;
  const { sandbox: wanted = "warn", inheritEnv = [], env: extraEnv = {} } = options;
  const root = new FileRoot(options.root);
  const sandbox = new Sandbox(typeof wanted === "string" ? { mode: wanted } : wanted);
  const isHeld = sandbox.policy.mode === "enforce";

  return tool({
    name: "bash",
    description: `Run a shell command in the workspace, without standard input, for at most ${timeoutMs} ms. Background processes of the command end with it. Output over ${maxOutputBytes} bytes is cut in the middle.`,
    inputSchema: input,
    risk: isHeld ? "high" : "critical",
    destructive: true,
    concurrency: "sequential",
    // The command's own timeout comes first, so that the output so far is kept.
    timeoutMs: timeoutMs + graceMs + 30_000,
    execute: async (
      { command, cwd = ".", timeoutMs: requestedMs = timeoutMs },
      { signal, idempotencyKey },
    ) => {
      if (command.includes("\0"))
        throw new Fault("invalid_argument", "invalid command: it contains a zero byte");
      const folder = await root.folder(cwd);
      try {
        const env = { ...environment(inheritEnv), ...extraEnv, REEVE_IDEMPOTENCY_KEY: idempotencyKey };
        const workspace = await root.path();
        const { prefix, report } = await sandbox.wrap({ workspace, cwd: folder.path, env });
        const [program, ...args] = [...prefix, shell(), "-c", command];
        const output = new OutputWindow(maxOutputBytes);
        const limit = Math.min(requestedMs, timeoutMs);
        const startedAt = performance.now();
        const end = await runGroup({
          program,
          args,
          // The descriptor of the folder that was checked, so that a path that changes meanwhile has no effect.
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
  const lines: string[] = [];
  if (isTimedOut) lines.push(`[stopped: the command took longer than ${limitMs} ms]`);
  else if (killedBy !== null) lines.push(`[killed by ${killedBy}]`);
  else if (exitCode !== 0) lines.push(`[exit code ${exitCode}]`);
  if (report.warning !== undefined) lines.push(`[run without a sandbox: ${report.warning}]`);
  return lines;
}

function environment(names: readonly string[]): Record<string, string> {
  const env: Record<string, string> = { TERM: "dumb", NO_COLOR: "1", PAGER: "cat", GIT_TERMINAL_PROMPT: "0" };
  for (const [name, value] of Object.entries(process.env)) {
    const isWanted = harmless.includes(name) || name.startsWith("LC_") || names.includes(name);
    if (isWanted && value !== undefined) env[name] = value;
  }
  return env;
}

/** Returns bash if it is installed, else `/bin/sh`. */
function shell(): string {
  return existsSync("/bin/bash") ? "/bin/bash" : "/bin/sh";
}
