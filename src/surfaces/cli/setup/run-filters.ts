import { Fault, type RunQuery } from "../../../kernel/index.ts";
import { dayRange, filterWord, scoreRange, type WordFilter } from "../../view/run-words.ts";
import { printable } from "../terminal/terminal.ts";

/** Returns the query for the filters of `--where`. Throws `invalid_argument` for an unknown filter. */
export function whereQuery(words: readonly string[], now = Date.now()): RunQuery {
  const filters = words.map(readFilter);
  const only = (name: WordFilter["name"]): string | undefined => {
    const [first, second] = filters.filter((filter) => filter.name === name);
    if (second === undefined) return first?.value;
    throw new Fault(
      "invalid_argument",
      `invalid --where: two filters are about ${name}, and a run fits at most one of them; use one`,
    );
  };
  const all = (name: WordFilter["name"]): readonly string[] =>
    filters.filter((filter) => filter.name === name).map(({ value }) => value);
  const [agentName, userId, tenantId] = [only("agent"), only("user"), only("tenant")];
  const [above, below] = [only("above"), only("below")];
  const score = scoreRange(only("score") ?? null);
  const [started, ended] = [only("started"), only("ended")].map((days) => dayRange(days ?? null, now));
  const [status, metadata] = [all("status"), all("meta").map(pairOf)];
  return {
    ...(status.length > 0 && { status: status as NonNullable<RunQuery["status"]> }),
    ...(agentName !== undefined && { agentName }),
    ...(userId !== undefined && { userId }),
    ...(tenantId !== undefined && { tenantId }),
    ...(metadata.length > 0 && { metadata: Object.fromEntries(metadata) }),
    ...(started != null && { createdAfter: started.from - 1, createdBefore: started.to }),
    ...(ended != null && { endedAfter: ended.from - 1, endedBefore: ended.to }),
    ...(above !== undefined && { costAbove: Number(above) }),
    ...(below !== undefined && { costBelow: Number(below) }),
    ...(score !== null && { score }),
  };
}

function readFilter(word: string): WordFilter {
  const found = filterWord(word);
  if (found !== null && found !== "problem") return found;
  const expected =
    found === null
      ? "a filter such as user=mara, status=failed, 'cost>1', 'score.thumbs<0.5', started=yesterday or a pair of the metadata such as order=8841"
      : "a status such as failed, days such as yesterday, 7d, 2026-11-16 or 2026-11-01..2026-11-16, or a score such as score.thumbs or 'score.thumbs<0.5'";
  throw new Fault("invalid_argument", `invalid --where ${printable(word)}: expected ${expected}`);
}

function pairOf(pair: string): readonly [string, string] {
  const at = pair.indexOf("=");
  return [pair.slice(0, at), pair.slice(at + 1)];
}
