import { Agent, OrchestratorAgent } from "../../../src/entries/index.ts";
import { fileTools, worktreeTools } from "../../../src/entries/tools.ts";
import type { PendingApproval, RunHandle } from "../../../src/kernel/index.ts";
import { scriptedModel } from "../../../src/testing/index.ts";
import type { Bench } from "../../runtime/runtime-setup.ts";
import type { TestRepository } from "./repository.ts";

/** What each employee writes: files by name of the employee. */
export type Work = Readonly<Record<string, Readonly<Record<string, string>>>>;

/** A lead that hires each employee once, lists their worktrees and merges the work of the given tasks. */
export function teamOf(
  { path, trees }: Pick<TestRepository, "path" | "trees">,
  work: Work,
  merges: readonly (readonly string[])[],
  options: { readonly isolatedLead?: boolean } = {},
): OrchestratorAgent {
  const isolation = { worktree: { repository: path, folder: trees } };
  const employees = Object.entries(work).map(
    ([name, files]) =>
      new Agent({
        name,
        model: scriptedModel([
          {
            toolCalls: Object.entries(files).map(([file, content]) => ({
              name: "write",
              input: { path: file, content },
            })),
          },
          "done",
        ]),
        tools: fileTools({ root: path }),
        isolation,
      }),
  );
  const hires = employees.map(({ name }) => ({
    toolCalls: [{ name: `handoff_${name}`, input: { task: "Work." } }],
  }));
  const calls = merges.map((tasks) => ({
    toolCalls: [{ name: "merge_worktrees", input: { tasks: [...tasks] } }],
  }));
  return new OrchestratorAgent({
    name: "lead",
    model: scriptedModel([...hires, { toolCalls: [{ name: "worktrees", input: {} }] }, ...calls, "done"]),
    subAgents: employees,
    tools: worktreeTools({ folder: trees }),
    ...(options.isolatedLead === true && { isolation }),
  });
}

/** Waits until the run asks a person, and returns the question. */
export async function asked(run: RunHandle): Promise<PendingApproval> {
  // Git takes time, so that a number of turns of the event loop would be no measure.
  for await (const { type } of run.events({ types: ["approval_request"] })) {
    const [found] = await run.pendingApprovals();
    if (type === "approval_request" && found !== undefined) return found;
  }
  throw new Error("the run has ended without a question");
}

/** Waits until the merge about which a person was asked has ended. */
export async function ended(bench: Bench, run: RunHandle, approvalId: string): Promise<void> {
  const asks = (await bench.events(run.runId)).find(
    (event) => event.type === "approval_request" && event.data.approvalId === approvalId,
  );
  for await (const { type } of run.events({ types: ["worktree_merge"], fromSeq: asks?.seq ?? 0 }))
    if (type === "worktree_merge") return;
}

/** The texts of the results of a tool. */
export async function resultsOf(bench: Bench, run: RunHandle, toolName: string): Promise<readonly string[]> {
  const texts: string[] = [];
  for (const event of await bench.events(run.runId))
    if (event.type === "tool_execution_end" && event.data.toolName === toolName) {
      const { output } = event.data.result;
      texts.push(output.type === "text" ? output.text : JSON.stringify(output));
    }
  return texts;
}
