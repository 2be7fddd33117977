import { Fault, type Event, type RunId } from "../../kernel/index.ts";

/**
 * Returns the id of the request with which a run waits for the result of a client-side tool. A provider may repeat a
 * call id, so the first call that has no result counts; if all have one, the last call. Throws `not_found` if the run
 * has made no such call.
 */
export async function findClientCall(
  runId: RunId,
  callId: string,
  events: AsyncIterable<Event>,
): Promise<string> {
  const open = new Set<string>();
  let last: string | undefined;
  for await (const event of events) {
    if (event.type === "approval_decision") open.delete(event.data.approvalId);
    if (event.type !== "approval_request") continue;
    const { approvalId, kind, callId: requested } = event.data;
    if (kind === "client_tool" && requested === callId) open.add((last = approvalId));
  }
  const [first = last] = open;
  if (first !== undefined) return first;
  throw new Fault(
    "not_found",
    `run ${runId} has no call ${JSON.stringify(callId)} of a client-side tool; use the callId of an approval_request event with the kind client_tool`,
    { details: { runId, callId } },
  );
}
