import {
  checkList,
  describeValue,
  executionBudget,
  Fault,
  parseHistoryRetention,
  parsePriority,
  parseSessionId,
  runKinds,
  type NextRun,
  is,
  optionTable,
  type OptionKinds,
} from "../../kernel/index.ts";

const nextTable = optionTable({
  key: is.any,
  // A child has no kind here: `shares` makes it one. The agent decides whether its runs are workflows.
  kind: is.choice(runKinds.filter((each) => each !== "child" && each !== "workflow")),
  input: is.any,
  sessionId: is.any,
  budget: is.checkedBy(executionBudget),
  priority: is.checkedBy(parsePriority),
  retention: is.checkedBy(parseHistoryRetention),
  metadata: is.named("data", '{ origin: "review" }'),
  shares: is.any,
  isAlone: is.boolean(),
} satisfies OptionKinds<NextRun>);
const sharesTable = optionTable({
  tools: is.list({ hint: 'use names, as in ["read"], or null for all tools' }),
  place: is.any,
} satisfies OptionKinds<NonNullable<NextRun["shares"]>>);
const nextKey = /^[A-Za-z0-9_-]{1,64}$/;

/**
 * Throws for next runs that could not be submitted when the run ends. It is called early, because the code could
 * not receive the fault at the end of the run.
 */
export function checkNextRuns(next: readonly NextRun[], isRoot: boolean): void {
  if (!isRoot)
    throw new Fault(
      "invalid_argument",
      "invalid next of ctx.report(): only the root task of a run may submit next runs; report them from the root's code",
    );
  checkList("next of ctx.report()", next, "pass an array of { key, input }");
  const keys = new Set<string>();
  for (const run of next) {
    const { key, sessionId } = nextTable.read("next of ctx.report()", run);
    const owner = `next run ${describeValue(key)}`;
    if (typeof key !== "string" || !nextKey.test(key) || keys.has(key))
      throw new Fault(
        "invalid_argument",
        `invalid key ${describeValue(key)} of a next run: expected 1 to 64 letters, digits, _ or -, different for each next run`,
      );
    keys.add(key);
    if (run.input === undefined)
      throw new Fault(
        "invalid_argument",
        `invalid input of ${owner}: expected a JSON value, not undefined; use null for no input`,
      );
    if (run.shares !== undefined) checkShares(owner, run.shares);
    if (sessionId !== undefined && sessionId !== null) parseSessionId(sessionId);
  }
}

function checkShares(owner: string, shares: NonNullable<NextRun["shares"]>): void {
  const { place } = sharesTable.read(`shares of ${owner}`, shares);
  if (typeof place !== "string" || !nextKey.test(place))
    throw new Fault(
      "invalid_argument",
      `invalid shares.place ${describeValue(place)} of ${owner}: expected 1 to 64 letters, digits, _ or -`,
    );
}
