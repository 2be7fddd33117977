import { formatAgentId, type ForeignCallView, type HostedAgent } from "../../src/kernel/index.ts";

const patch = "--- a\n+++ b\n@@ -1,2 +1,2 @@\n same\n-const old = 1;\n+const fresh = 2;\n";
export const inside = "/srv/trees/t1/src/round.ts";
export const outside = "/home/ada/.ssh/authorized_keys";
const allow = { kind: "allow_once", name: "Yes" };
export const always = { kind: "allow_always", name: "Yes, and do not ask again" };
export const reject = { kind: "reject_once", name: "No" };

/**
 * An agent whose program asks whether it may make a call. The program then reports that it has made the call, with a
 * change that it reported late.
 */
export function hired(name: string, view: ForeignCallView): HostedAgent {
  return {
    id: formatAgentId({ name }),
    run: (ctx) =>
      ctx.attempt(
        "work",
        async (attempt) => {
          const call = { callId: "c1", toolName: "edit", input: { path: inside } };
          attempt.tell({ type: "call_start", ...call, view });
          const { decision } = await attempt.permit({ ...call, view });
          const isError = decision !== "approved";
          const result = { output: { type: "text", text: decision }, isError } as const;
          const status = isError ? "denied" : "ok";
          const late = { diffs: [{ path: inside, isOutside: false, diff: patch.replace("fresh", "late") }] };
          attempt.tell({
            type: "call_end",
            callId: "c1",
            toolName: "edit",
            result,
            durationMs: 5,
            status,
            view: late,
          });
          return decision;
        },
        { program: { name: "claude-code", source: "acp" } },
      ),
  };
}

/** What the program says about its call. */
export const view: ForeignCallView = {
  title: "Repair the rounding",
  kind: "edit",
  options: [allow, always, reject],
  locations: [
    { path: inside, isOutside: false, line: 2 },
    { path: outside, isOutside: true },
  ],
  diffs: [{ path: inside, isOutside: false, diff: patch }],
};
