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
});
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
    checkChoice(owner, "kind", kind, runKinds);
    if (budget !== undefined) executionBudget(budget);
    if (priority !== undefined) parsePriority(priority);
    if (retention !== undefined) parseHistoryRetention(retention);
    if (metadata !== undefined)
      requireNamed(`metadata of ${owner}`, metadata, "data", '{ origin: "review" }');
    if (sessionId !== undefined && sessionId !== null) parseSessionId(sessionId);
  }
}
