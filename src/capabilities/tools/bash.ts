import { Fault, type JsonObject, type Tool, is, optionTable, type OptionKinds } from "../../kernel/index.ts";
import { FileRoot } from "../files/file-root.ts";
import { commandEnvironment, commandShell } from "../sandbox/command-environment.ts";
import { Sandbox } from "../sandbox/sandbox.ts";
import type { SandboxMode, SandboxPolicy, SandboxReport } from "../sandbox/sandbox-policy.ts";
import { OutputWindow } from "./output-window.ts";
import { runGroup, type ProcessEnd } from "./process-group.ts";
import { durationKind, tool } from "./tool.ts";

/** Options of `bashTool()`. */
export interface BashToolOptions {
  /** Folder in which commands start. Without a sandbox, commands can leave it. */
  readonly root: string;
  /** Further folders that commands may write and start in, by their absolute paths. Default: none. */
  readonly folders?: readonly string[];
  /** Sandbox of the commands. Default: `enforce`, so that commands fail on machines without a sandbox. */
  readonly sandbox?: SandboxMode | SandboxPolicy;
  /** Maximum duration of a command, in milliseconds. A call may request less. Default, also for `null`: 120_000. */
  readonly timeoutMs?: number | null;
  /** Maximum number of bytes of output that are kept, half from the start and half from the end. Default: 32_768. */
  readonly maxOutputBytes?: number;
  /** Milliseconds between SIGTERM and SIGKILL when a command is stopped. Default: 2_000. */
  readonly graceMs?: number;
  /** Names of environment variables of this process that commands get, in addition to harmless ones such as `PATH`. */
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

/** What the model learns about the sandbox. */
const shownModes: Readonly<Record<SandboxMode, string>> = {
  enforce:
    "Commands run in a sandbox: only the workspace and /tmp can be written, and control files such as .git/config and .git/hooks are read-only.",
  warn: "Commands run in a sandbox if one is available; otherwise they run without a sandbox, and the result says so.",
  off: "Commands run without a sandbox, with all permissions of the user.",
};

const defaultMs = 120_000;

const knownOptions = optionTable({
  root: is.text(),
  folders: is.list({ of: is.text() }),
  sandbox: is.any,
  timeoutMs: durationKind(defaultMs),
  maxOutputBytes: is.number({ from: 0, default: 32_768 }),
  graceMs: is.number({ from: 0, default: 2_000 }),
  inheritEnv: is.list({ of: is.text() }),
  env: is.any,
} satisfies OptionKinds<BashToolOptions>);

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
 *   tools: [bashTool({ root: "./workspace", timeoutMs: 60_000 })],
 * });
 * ```
 */
export function bashTool(options: BashToolOptions): Tool {
  const { timeoutMs: limitMs, maxOutputBytes, graceMs } = knownOptions.read("bashTool()", options);
  const timeoutMs = limitMs ?? defaultMs;
  const { sandbox: wanted = "enforce", inheritEnv = [], env: extraEnv = {} } = options;
  const { folders = [] } = options;
  const base = new FileRoot(options.root, { folders });
  const sandbox = new Sandbox(typeof wanted === "string" ? { mode: wanted } : wanted);
  const { mode, network = false } = sandbox.policy;
  const reach =
    mode === "off" ? "" : network ? " They can reach the network." : " They cannot reach the network.";
  const also = folders.length === 0 ? "" : ` They can also write ${folders.join(", ")}.`;

  return tool({
    name: "bash",
    description: `Run a shell command in the workspace, without standard input, for at most ${timeoutMs} ms. Background processes of the command end with it. Output over ${maxOutputBytes} bytes is cut in the middle. ${shownModes[mode]}${also}${reach}`,
    inputSchema: input,
    risk: mode === "enforce" ? "high" : "critical",
    destructive: true,
    concurrency: "sequential",
    // The command's own timeout comes first, so that the output so far is kept.
    timeoutMs: timeoutMs + graceMs + 30_000,
    execute: async (
      { command, cwd = ".", timeoutMs: requestedMs = timeoutMs },
      { signal, idempotencyKey, folder: own },
    ) => {
      if (command.includes("\0"))
        throw new Fault("invalid_argument", "invalid command: it contains a zero byte");
      const root = await base.in(own);
      const folder = await root.folder(cwd);
      try {
        const launch = await sandbox.launch({
          workspace: await root.path(),
          folders: await root.furtherPaths(),
          mounts: own?.mounts ?? [],
          cwd: folder.path,
          shell: commandShell(),
          command,
          env: commandEnvironment(inheritEnv),
          setEnv: { ...own?.env, ...extraEnv, REEVE_IDEMPOTENCY_KEY: idempotencyKey },
        });
        const output = new OutputWindow(maxOutputBytes);
        const limit = Math.min(requestedMs, timeoutMs);
        const startedAt = performance.now();
        let end: ProcessEnd;
        let report: SandboxReport;
        try {
          end = await runGroup({
            // The descriptor of the folder that was checked, so that a path that changes meanwhile has no effect.
            cwd: folder.here,
            ...launch,
            timeoutMs: limit,
            graceMs,
            signal,
            onOutput: (chunk) => output.add(chunk),
          });
        } finally {
          report = await launch.end();
        }
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
  { exitCode, killedBy, isTimedOut, isOverLimit }: ProcessEnd,
  limitMs: number,
  report: SandboxReport,
): string[] {
  const lines: string[] = [];
  const { created = [], undone = [] } = report;
  if (isTimedOut) lines.push(`[stopped: the command took longer than ${limitMs} ms]`);
  else if (isOverLimit && undone.length > 0) lines.push("[stopped: the command changed a control file]");
  else if (isOverLimit) lines.push("[stopped: the command had too many processes]");
  else if (killedBy !== null) lines.push(`[killed by ${killedBy}]`);
  else if (exitCode !== 0) lines.push(`[exit code ${exitCode}]`);
  if (undone.length > 0)
    lines.push(`[undone, because these control files must not be created or replaced: ${undone.join(", ")}]`);
  if (created.length > 0)
    lines.push(`[created control files, which other programs execute or obey: ${created.join(", ")}]`);
  if (report.warning !== undefined) lines.push(`[run without a sandbox: ${report.warning}]`);
  return lines;
}
