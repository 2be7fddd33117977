/**
 * Runs tool calls in a process of its own, so that an attack can run as another user and with secrets in the
 * environment. Requests and results are messages of the process.
 */
import {
  Fault,
  type JsonValue,
  type Tool,
  type ToolContext,
  type ToolResult,
} from "../../src/kernel/index.ts";
import {
  bashTool,
  fileTools,
  grepTool,
  readTool,
  type BashToolOptions,
} from "../../src/capabilities/tools/index.ts";

/** A call of one tool in a workspace. */
export interface AttackRequest {
  readonly root: string;
  readonly tool: string;
  readonly input: JsonValue;
  /** Options of the shell tool or of `grep`. */
  readonly options?: Partial<BashToolOptions>;
}

process.on("message", ({ id, request }: { readonly id: number; readonly request: AttackRequest }) => {
  void answer(request).then((result) => process.send?.({ id, result }));
});

async function answer({ root, tool: name, input, options = {} }: AttackRequest): Promise<ToolResult> {
  try {
    const tool = toolOf(name, { root, ...options });
    const context = {
      signal: new AbortController().signal,
      progress: () => {},
      ctx: { step: (_name: string, body: () => Promise<unknown>) => body() },
      idempotencyKey: "run/task/1",
      callId: "c",
    };
    return await tool.execute(await tool.parse(input), context as unknown as ToolContext);
  } catch (error) {
    return { output: { type: "text", text: Fault.from(error).message }, isError: true };
  }
}

/**
 * The shell tools that were created so far. A tool that is used again does not look for its sandbox a second time, as in
 * a run.
 */
const shells = new Map<string, Tool>();

function toolOf(name: string, options: BashToolOptions): Tool {
  if (name === "bash") {
    const key = JSON.stringify(options);
    const shell = shells.get(key) ?? bashTool(options);
    shells.set(key, shell);
    return shell;
  }
  const { root, timeoutMs = 20_000 } = options;
  const tools = [grepTool({ root, timeoutMs }), readTool({ root }), ...fileTools({ root })];
  const tool = tools.find((each) => each.name === name);
  if (tool === undefined) throw new Error(`unknown tool ${name}`);
  return tool;
}
