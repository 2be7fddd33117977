import {
  assertJson,
  canonicalJson,
  type ForeignCall,
  type ForeignVerdict,
  type Tool,
  type ToolOutput,
} from "../../kernel/index.ts";
import { parsedArguments } from "./call-arguments.ts";
import type { CallingScope, ForeignQuestion } from "./gate-context.ts";
import { denied, passGate } from "./tool-gate.ts";
import { narrowedTools } from "./received-call.ts";

/** What the checks need to know about the attempt in which a program wants to make a call. */
export interface ForeignGate extends Omit<ForeignQuestion, "details"> {
  /** Name of the program. */
  readonly program: string;
}

/**
 * Passes a call that a program wants to make through the checks of a tool call: the tools that the task may call,
 * hooks, extensions, guardrails, permissions and a person decide as on a call of the agent's own tools. The call is
 * not executed here.
 */
export function judgeForeignCall(
  from: CallingScope,
  call: ForeignCall,
  { program, ...asking }: ForeignGate,
): Promise<ForeignVerdict> {
  const { steps } = from;
  const { callId, toolName, input, view = {} } = call;
  const { worker } = steps.runner;
  const step = steps.identify("step", `permission ${toolName}`, input);
  return steps.run<ForeignVerdict>(step, async (open) => {
    assertJson(input, `the arguments of ${toolName}`);
    worker.sizes.assert(input, `the arguments of ${toolName}`);
    const tool = foreignTool(program, toolName, (value) => worker.hash(canonicalJson(value)));
    const foreign: ForeignQuestion = { ...asking, details: { ...view, program } };
    const options = { open, call: { callId, toolName, input }, from, extra: [tool], foreign };
    const narrowed = narrowedTools(options, tool, undefined);
    if (narrowed !== undefined) return refusedBy(denied(options, narrowed).output);
    const judged = { tool, needsApproval: false, input: parsedArguments(input, input) };
    const passed = await passGate({ ...options, ...judged });
    return passed.kind === "allowed" ? { decision: "approved" } : refusedBy(passed.result.output);
  });
}

function refusedBy(output: ToolOutput): ForeignVerdict {
  const text = output.type === "text" ? output.text : JSON.stringify(output);
  return { decision: "refused", reason: /^\[(?:denied: )?(.*)\]$/su.exec(text)?.[1] ?? text };
}

/**
 * Creates a tool that represents a tool of a program in the checks. It counts as critical, because what the program
 * reports about its kind is not trusted. A remembered approval covers only the same arguments.
 */
function foreignTool(program: string, name: string, digest: (input: unknown) => string): Tool {
  return {
    name,
    description: `A tool of the program ${program}`,
    inputSchema: {},
    origin: { server: program, name },
    risk: "critical",
    destructive: true,
    edits: false,
    concurrency: "parallel",
    timeoutMs: null,
    suspends: true,
    needsApproval: () => false,
    approvalScope: digest,
    parse: (input) => input,
    execute: () => Promise.reject(new Error(`${name} is a tool of ${program}, which executes it`)),
  };
}
