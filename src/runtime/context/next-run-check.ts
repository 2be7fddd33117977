import {
  checkChoice,
  checkList,
  checkOptions,
  describeValue,
  executionBudget,
  Fault,
  optionNames,
  parseHistoryRetention,
  parsePriority,
  parseSessionId,
  requireNamed,
  runKinds,
  type NextRun,
} from "../../kernel/index.ts";

const nextNames = optionNames<NextRun>({
  key: true,
  kind: true,
  input: true,
  sessionId: true,
  budget: true,
  priority: true,
  retention: true,
  metadata: true,
  shares: true,
  isAlone: true,
});
const sharesNames = optionNames<NonNullable<NextRun["shares"]>>({ tools: true, place: true });
const nextKey = /^[A-Za-z0-9_-]{1,64}$/;

/** Refuses next runs that could not be submitted when the run ends, because the code could not receive the fault then. */
export function checkNextRuns(next: readonly NextRun[], isRoot: boolean): void {
  if (!isRoot)
    throw new Fault(
      "invalid_argument",
      "invalid next of ctx.report(): only the root task of a run may submit next runs; report them from the root's code",
    );
  checkList("next of ctx.report()", next, "pass an array of { key, input }");
  const keys = new Set<string>();
  for (const run of next) {
    checkOptions("next of ctx.report()", run, nextNames);
    const { key, kind, budget, priority, retention, sessionId, metadata } = run;
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
    // A child has no kind here: `shares` makes it one.
    checkChoice(
      owner,
      "kind",
      kind,
      runKinds.filter((each) => each !== "child"),
    );
    if (run.shares !== undefined) checkShares(owner, run.shares);
    if (budget !== undefined) executionBudget(budget);
    if (priority !== undefined) parsePriority(priority);
    if (retention !== undefined) parseHistoryRetention(retention);
    if (metadata !== undefined)
      requireNamed(`metadata of ${owner}`, metadata, "data", '{ origin: "review" }');
    if (sessionId !== undefined && sessionId !== null) parseSessionId(sessionId);
  }
}

function checkShares(owner: string, shares: NonNullable<NextRun["shares"]>): void {
  checkOptions(`shares of ${owner}`, shares, sharesNames);
  const { tools, place } = shares;
  checkList(`shares.tools of ${owner}`, tools, 'use names, as in ["read"], or null for all tools');
  if (typeof place !== "string" || !nextKey.test(place))
    throw new Fault(
      "invalid_argument",
      `invalid shares.place ${describeValue(place)} of ${owner}: expected 1 to 64 letters, digits, _ or -`,
    );
}
