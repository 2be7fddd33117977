import { Agent, tool } from "../../../src/entries/index.ts";
import { workflow } from "../../../src/entries/workflow.ts";
import { Fault, formatRunId } from "../../../src/kernel/index.ts";
import { z } from "zod";
import { hasErrors, workload } from "../workload.ts";

interface World {
  /** The amounts that were paid, by idempotency key. */
  readonly paid: Map<string, number>;
  readonly received: string[];
}

/** A payment that a person approves with another amount or denies, and a workflow that receives signals while workers die. */
export const approvals = workload<World>("approvals", (seed) => {
  const isApproved = seed % 3 !== 0;
  const runId = formatRunId("payment");
  const signals = Array.from({ length: 1 + (seed % 4) }, (_, index) => `s${index}`);
  return {
    world: () => ({ paid: new Map(), received: [] }),
    runtime: { suspendAfterMs: seed % 2 === 0 ? 5 : 2_000 },
    agents: ({ call, model, world }) => {
      const pay = tool({
        name: "pay",
        description: "Pays an amount.",
        inputSchema: z.object({ cents: z.number() }),
        needsApproval: true,
        execute: ({ cents }, { idempotencyKey: key }) =>
          call("bank", () => void world.paid.set(key, cents), { key }),
      });
      const clerk = model(({ messages }) =>
        messages.some(({ role }) => role === "tool")
          ? "Done."
          : { toolCalls: [{ name: "pay", input: { cents: 100 } }] },
      );
      const listener = workflow("listener", async (ctx) => {
        const heard: unknown[] = [];
        for (const _ of signals) heard.push(await ctx.waitForSignal("word"));
        return heard as string[];
      });
      return [new Agent({ name: "clerk", model: clerk, tools: [pay] }), listener];
    },
    load: async ({ runtime, submit, sleep, world }) => {
      const run = await submit("clerk", "Pay the bill.", { runId });
      const listening = await runtime.start("listener", null, { runId: formatRunId("listener") });
      for (const signal of signals) {
        // Sent twice with one id, as by a client that has got no answer. The second one may find that the run has ended.
        await listening.signal("word", signal, { id: signal });
        await listening.signal("word", signal, { id: signal }).catch(refuseOthers);
        await sleep(50);
      }
      for (let isOpen = true; isOpen;) {
        const [question] = await run.pendingApprovals();
        if (question !== undefined) {
          isOpen = false;
          if (isApproved)
            await run.approve(question.approvalId, { decision: "approved", input: { cents: 90 } });
          else await run.approve(question.approvalId, { decision: "denied", reason: "too much" });
        }
        await sleep(100);
      }
      world.received.push(...((await listening.result()).output as string[]));
    },
    check: ({ runs, world }) => {
      const wrong: string[] = [];
      for (const { run } of runs) if (run.status !== "completed") wrong.push(`${run.runId} is ${run.status}`);
      const paid = [...world.paid.values()].join(" ");
      const expected = isApproved ? "90" : "";
      // A call that the bank has not answered is an error for the model, which does not try again.
      const isUnpaid = paid === "" && hasErrors(runs);
      if (paid !== expected && !isUnpaid)
        wrong.push(`paid ${paid || "nothing"}, and approved was ${expected || "nothing"}`);
      if (world.received.join(" ") !== signals.join(" "))
        wrong.push(`the listener received ${world.received.join(" ")}, and not ${signals.join(" ")}`);
      return wrong;
    },
  };
});

function refuseOthers(error: unknown): void {
  if (Fault.from(error).code !== "not_found") throw error;
}
