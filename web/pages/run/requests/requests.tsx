import { visibleLine, type Event } from "../../../../src/kernel/index.ts";
import { droppedAt } from "../../../../src/surfaces/view/question-log.ts";
import { runTime } from "../../../../src/surfaces/view/run-clock.ts";
import type { RunView } from "../../../../src/surfaces/view/run-view.ts";
import type { JSX } from "preact";
import { get, post } from "../../../api/client.ts";
import type { GatewayRun } from "../../../api/types.ts";
import { useRead } from "../../../api/use-read.ts";
import { ago, clock, columnUsd, counted, grouped, took } from "../../../base/format.ts";
import { now } from "../../../base/now.ts";
import { runPath } from "../../../base/route.ts";
import type { EventFilter } from "../../../model/event-filter.ts";
import { rootId } from "../../../model/money.ts";
import {
  gatewayBudget,
  gatewayState,
  isRefused,
  requestOf,
  requestTypes,
  type RequestRow,
} from "../../../model/gateway/gateway-requests.ts";
import type { RunModel } from "../../../model/run-model.ts";
import { useEvents } from "../../../model/use-events.ts";
import { dialog, FormDialog } from "../../../parts/dialog.tsx";
import { areOrdersOff } from "../../../parts/orders.ts";
import { ApprovalCard } from "../../../parts/approval-card.tsx";
import { shownName } from "../../../parts/name.tsx";
import { Models } from "../money-view.tsx";

const filter: EventFilter = { taskId: rootId, types: [...requestTypes] };
/** How often the open requests are read, in milliseconds. */
const readEveryMs = 5_000;
/** Number of requests that are drawn. Older ones are in the list of events. */
const mostRows = 500;

/** The requests of a program behind the gateway, newest first, and what may be done about those that were refused. */
export function Requests({ model }: { readonly model: RunModel }): JSX.Element {
  const view = model.view.value;
  const { events, isReading, problem } = useEvents(model, filter);
  if (view === null) return <></>;
  const known = events.filter(({ seq }) => seq <= model.shownSeq);
  const rows = known.flatMap((event) => requestOf(event) ?? []);
  const shown = rows.slice(-mostRows).toReversed();
  const refused = rows.filter(isRefused).length;
  const note = problem ?? (isReading ? "Reading requests" : null);
  return (
    <div class="canvas steps requests">
      <Facts model={model} sent={rows.length - refused} refused={refused} />
      <Tokens model={model} />
      <Questions model={model} view={view} />
      <CapNote known={known} />
      <Models view={view} />
      {note !== null && <p class="dim">{note}</p>}
      {rows.length === 0 && note === null && (
        <p class="mid">No request has ended yet. A program sends them with the token of this run.</p>
      )}
      {rows.length > shown.length && (
        <p class="dim">
          {grouped(rows.length - shown.length)} earlier requests are in the{" "}
          <a href={runPath(model.runId, "events")}>events</a>.
        </p>
      )}
      {shown.length > 0 && (
        <table class="table dense figure-cards" aria-label="Requests, newest first">
          <thead>
            <tr>
              <th class="c-small">Time</th>
              <th>Model</th>
              <th>Outcome</th>
              <th class="c-model right">Tokens</th>
              <th class="c-model right">Output limit</th>
              <th class="c-small right">Took</th>
              <th class="c-model right">Reserved</th>
              <th class="c-small right">Cost</th>
            </tr>
          </thead>
          <tbody>
            {shown.map((row) => (
              <Row key={row.seq} row={row} view={view} />
            ))}
          </tbody>
        </table>
      )}
      <p class="dim foot">
        The log has no prompts and no answers, unless the gateway records them. Amounts are what the ledger
        charged.
      </p>
    </div>
  );
}

function Row({ row, view }: { readonly row: RequestRow; readonly view: RunView }): JSX.Element {
  const { at, model, words, isBad, tokens, limit, durationMs, reservedUsd, costUsd } = row;
  return (
    <tr>
      <td class="dim">{clock(runTime(view, at))}</td>
      <td class="cut">{model === null ? "–" : visibleLine(model)}</td>
      <td class={isBad ? "bad" : "mid"}>{visibleLine(words)}</td>
      <td class="right" data-head="Tokens">
        {tokens === null ? "–" : `${grouped(tokens.input)} in, ${grouped(tokens.output)} out`}
      </td>
      <td class="right" data-head="Output limit">
        {limit === null ? "–" : limitWords(limit)}
      </td>
      <td class="right" data-head="Took">
        {durationMs === null ? "–" : took(durationMs)}
      </td>
      <td class="right" data-head="Reserved">
        {reservedUsd === null ? "–" : reservedWords(reservedUsd, costUsd)}
      </td>
      <td class="right" data-head="Cost">
        {costUsd === null ? "–" : columnUsd(costUsd)}
      </td>
    </tr>
  );
}

function limitWords({ asked, sent }: NonNullable<RequestRow["limit"]>): string {
  if (asked === sent) return grouped(sent);
  return `${asked === null ? "none" : grouped(asked)} asked, ${grouped(sent)} sent`;
}

function reservedWords(reservedUsd: number, costUsd: number | null): string {
  const back = reservedUsd - (costUsd ?? reservedUsd);
  return back <= 0 ? columnUsd(reservedUsd) : `${columnUsd(reservedUsd)}, ${columnUsd(back)} given back`;
}

/** The tokens of the run, its open requests, and whether this server answers them. */
function Tokens({ model }: { readonly model: RunModel }): JSX.Element | null {
  const summary = model.summary.value;
  const { runId } = model;
  const isOver = summary?.endedAt != null;
  const { value, again } = useRead(
    (signal) => get("/api/gateway/runs/{runId}", { params: { runId }, signal }),
    [runId, summary?.status, isOver ? 0 : Math.floor(now.value / readEveryMs)],
  );
  if (summary === null || value === null) return null;
  const { figures, tokens } = value;
  const state = gatewayState(summary, value, model.view.value?.tasks.get(rootId)?.result ?? null);
  const open = figures?.open ?? 0;
  return (
    <section class="gateway-tokens" aria-label="Tokens and open requests">
      {state !== null && (
        <p class={isOver ? "mid" : "problem"} role="status">
          {state}
        </p>
      )}
      {figures !== null && <p class="mid">{openWords(figures)}</p>}
      {tokens.map(({ ending, createdAt, expiresAt }) => (
        <p class="mid" key={`${ending} ${createdAt}`}>
          Token …{visibleLine(ending)}, created {ago(createdAt, now.value)}
          {expiresAt !== null && `, valid until ${utcTime(new Date(expiresAt).toISOString())}`}
        </p>
      ))}
      {tokens.length > 0 && (
        <button
          class="button"
          disabled={areOrdersOff(model)}
          onClick={() => openRevoke(runId, tokens.length, open, again)}
        >
          {tokens.length === 1 ? "Revoke token" : "Revoke tokens"}
        </button>
      )}
    </section>
  );
}

function openWords({ open, held, addedDelayMs }: NonNullable<GatewayRun["figures"]>): string {
  const waiting = held === 0 ? "" : `, ${grouped(held)} of them held for a top-up`;
  const delay = addedDelayMs === null ? "" : `. The gateway adds ${took(addedDelayMs)} to a request`;
  return `${counted(open, "open request")}${waiting}${delay}`;
}

function openRevoke(runId: string, tokens: number, open: number, again: () => void): void {
  const revoke = async (): Promise<void> => {
    await post("/api/gateway/runs/{runId}/revoke", { params: { runId } });
    again();
  };
  dialog.value = () => (
    <FormDialog
      title={tokens === 1 ? "Revoke the token" : `Revoke ${counted(tokens, "token")}`}
      confirm={tokens === 1 ? "Revoke token" : "Revoke tokens"}
      isDangerous
      onConfirm={revoke}
    >
      <p>
        Programs that use {tokens === 1 ? "it" : "them"} are refused at once, and the run ends.{" "}
        {open === 0
          ? "No request is open."
          : `${counted(open, "open request")} will be cut and charged with what the provider has reported.`}
      </p>
    </FormDialog>
  );
}

/** Who pays and how much, and how many requests there were. */
function Facts({
  model,
  sent,
  refused,
}: {
  readonly model: RunModel;
  readonly sent: number;
  readonly refused: number;
}): JSX.Element | null {
  const summary = model.summary.value;
  if (summary === null) return null;
  const { userId, tenantId, metadata } = summary;
  const budget = gatewayBudget(metadata);
  const facts = [
    ["Requests", counted(sent, "request")],
    ["Refused", grouped(refused)],
    ...(budget === null ? [] : [["Budget", budget]]),
    ...(userId === null ? [] : [["User", shownName(userId)]]),
    ...(tenantId === null ? [] : [["Tenant", shownName(tenantId)]]),
  ];
  return (
    <dl class="step-values" aria-label="The program">
      {facts.map(([name = "", text = ""]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{text}</dd>
        </div>
      ))}
    </dl>
  );
}

/** The questions for a top-up. An open one can be answered here. */
function Questions({ model, view }: { readonly model: RunModel; readonly view: RunView }): JSX.Element {
  return (
    <>
      {[...view.asked].map((question) => (
        <ApprovalCard
          key={question.request.approvalId}
          question={{ ...question, runId: view.runId, droppedAt: droppedAt(question, view) }}
          hasKeys={model.playhead.value === null}
        />
      ))}
    </>
  );
}

/** Says which cap refused the newest request, and when it resets. */
function CapNote({ known }: { readonly known: readonly Event[] }): JSX.Element | null {
  const last = known.findLast(({ type }) => type !== "gateway_request");
  if (last?.type !== "budget_exhausted") return null;
  const { cap } = last.data;
  if (cap === undefined) return null;
  return (
    <p class="problem" role="status">
      {capWords(cap.limitUsd, cap.name)} is used up. It resets at {utcTime(cap.resetsAt)}, and cannot be
      topped up.
    </p>
  );
}

function utcTime(iso: string): string {
  return `${iso.replace("T", " ").slice(0, 16)} UTC`;
}

function capWords(limitUsd: number, name: string): string {
  return `The cap of ${columnUsd(limitUsd)} (${name})`;
}
