import type { JSX } from "preact";
import { get } from "../../api/client.ts";
import { asking } from "../../api/runs-feed.ts";
import type { Run } from "../../api/types.ts";
import { ago, counted, grouped, shortId } from "../../base/format.ts";
import { objectPath, runPath } from "../../base/route.ts";
import { now } from "../../base/now.ts";
import { lookOfRun, runWord } from "../../model/status.ts";
import { Glyph } from "../../parts/glyph.tsx";
import { shownName } from "../../parts/name.tsx";

/** Number of calls that the page reads. */
const mostCalls = 500;

/** The calls of an object that have not ended, by key. */
export interface Lines {
  /** Each key with its calls: first the one that has the key, then those in line. */
  readonly ofKey: ReadonlyMap<string, readonly Run[]>;
  /** Whether there are more calls than the page reads. The newest are read. */
  readonly isMore: boolean;
}

interface LinesOf {
  readonly name: string;
  readonly tenantId: string | null;
}

/** Reads the calls of an object that have not ended. Calls of shared handlers wait for no other and are not among them. */
export async function readLines({ name, tenantId }: LinesOf, signal: AbortSignal): Promise<Lines> {
  const access = await get("/api/access", { signal });
  const tenant = access.tenantId ?? tenantId;
  const { runs, next } = await get("/api/runs", {
    query: {
      agent: name,
      status: ["pending", "running", "waiting", "paused"],
      limit: mostCalls,
      ...(tenant !== null && { tenantId: tenant }),
    },
    signal,
  });
  const ofKey = new Map<string, Run[]>();
  // The list begins with the newest run, and runs of one millisecond keep their order.
  for (const run of runs.toReversed().toSorted(inLine)) {
    const { object } = run.flow ?? {};
    if (object?.name !== name || object.isShared === true || run.tenantId !== tenant || run.endedAt !== null)
      continue;
    const calls = ofKey.get(object.key);
    if (calls === undefined) ofKey.set(object.key, [run]);
    else calls.push(run);
  }
  return { ofKey, isMore: next !== null };
}

/** The order of the calls of a key: the one that has it, then by priority and age. */
function inLine(one: Run, other: Run): number {
  return (
    Number(isInLine(one)) - Number(isInLine(other)) ||
    other.priority - one.priority ||
    dueAt(one) - dueAt(other)
  );
}

/** Whether a call has not got its key. A pending call that waits for a worker has it. */
function isInLine({ status, waitsFor }: Run): boolean {
  return status === "pending" && (waitsFor.includes("queue") || waitsFor.includes("time"));
}

function dueAt({ createdAt, startAt }: Run): number {
  return Math.max(createdAt, startAt ?? 0);
}

/** The keys that have calls in line, each with the number of its calls. */
export function LinesByKey({
  of,
  lines,
}: {
  readonly of: LinesOf;
  readonly lines: Lines;
}): JSX.Element | null {
  const { name, tenantId } = of;
  const { ofKey, isMore } = lines;
  if (ofKey.size === 0) return null;
  const keys = [...ofKey].toSorted(([, one], [, other]) => other.length - one.length);
  return (
    <>
      <h2>Calls in line</h2>
      <table class="table states calls-by-key">
        <thead>
          <tr>
            <th>Key</th>
            <th>Calls</th>
            <th>First</th>
          </tr>
        </thead>
        <tbody>
          {keys.map(([key, calls]) => (
            <tr key={key}>
              <td class="cut">
                <a class="link" title={shownName(key)} href={objectPath(name, { key, tenantId })}>
                  {shownName(key)}
                </a>
              </td>
              <td>{counted(calls.length, "call")}</td>
              <td class="cut">{calls[0] !== undefined && <Call run={calls[0]} />}</td>
            </tr>
          ))}
        </tbody>
      </table>
      {isMore && <More />}
      <h2>States</h2>
    </>
  );
}

/** The calls of a key that have not ended, in their order. */
export function LineOfKey({
  chosen,
  lines,
}: {
  readonly chosen: string;
  readonly lines: Lines;
}): JSX.Element {
  const calls = lines.ofKey.get(chosen) ?? [];
  return (
    <section aria-labelledby="in-line">
      <h2 id="in-line">Calls in line</h2>
      {calls.length === 0 ? (
        <p class="mid">No call waits or runs.</p>
      ) : (
        <ol class="line-of-key">
          {calls.map((run) => (
            <li key={run.runId}>
              <Call run={run} />
            </li>
          ))}
        </ol>
      )}
      {lines.isMore && <More />}
    </section>
  );
}

function Call({ run }: { readonly run: Run }): JSX.Element {
  const look = lookOfRun(run, asking.value);
  return (
    <span class="call-in-line">
      <span class={`status ${look}`}>
        <Glyph look={look} status={run.status} />
        <span class="word">{runWord(run, asking.value)}</span>
      </span>
      <a class="link" href={runPath(run.runId)} title={run.runId}>
        <code>{shortId(run.runId)}</code>
      </a>
      <span class="dim">{ago(run.createdAt, now.value)}</span>
    </span>
  );
}

function More(): JSX.Element {
  return (
    <p class="mid">
      More than {grouped(mostCalls)} calls of this object have not ended. The newest of them are counted here.
    </p>
  );
}
