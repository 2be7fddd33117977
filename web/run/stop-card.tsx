import type { RunView } from "../../src/surfaces/view/run-view.ts";
import type { JSX } from "preact";
import { capUsd, counted, usd } from "../parts/format.ts";
import { Glyph } from "../parts/glyph.tsx";
import { Purse } from "../parts/purse.tsx";
import { hasEnded, statusWord } from "../parts/status.ts";
import { purseOf, rootId, spentOf } from "./money.ts";
import { openTopUp, resume, topUp } from "./orders.tsx";
import type { RunModel } from "./run-model.ts";

interface StopProps {
  readonly model: RunModel;
  readonly view: RunView;
  readonly onOrder: (action: Promise<void>) => void;
}

/** What happened, what was kept and what to do, for a run that ended without completing. */
export function StopCard({ model, view, onOrder }: StopProps): JSX.Element | null {
  const root = view.tasks.get(rootId);
  if (
    !hasEnded(view.status) ||
    view.status === "completed" ||
    view.status === "cancelled" ||
    root === undefined
  )
    return null;
  const purse = purseOf(root, null);
  const isMoney = view.status === "budget_exhausted" && purse.cap !== null;
  const answered = root.total.calls - root.total.lost.calls;
  const amount = Math.max(1, Math.ceil((purse.cap ?? 0) / 2));
  return (
    <section class="fault" aria-label={statusWord(view.status)}>
      <header>
        <Glyph look="failed" />
        {statusWord(view.status)}
        <code>{view.failure?.code ?? view.status}</code>
      </header>
      <div class="body">
        <div>
          <p class="lead">
            {view.failure?.message ?? `The run ended: ${statusWord(view.status).toLowerCase()}.`}
          </p>
          <p class="mid">
            Nothing is lost: {counted(answered, "answered call")} {answered === 1 ? "is" : "are"} recorded.
            The run continues from there and pays for none of them again.
          </p>
          <div class="actions">
            {isMoney ? (
              <>
                <button class="button primary" onClick={() => onOrder(topUp(model, amount))}>
                  Top up {capUsd(amount)} and continue
                </button>
                <button class="button" onClick={() => openTopUp(model)}>
                  Other amount
                </button>
              </>
            ) : (
              <button class="button primary" onClick={() => onOrder(resume(model))}>
                Continue from the last step
              </button>
            )}
          </div>
        </div>
        {purse.cap !== null && (
          <div>
            <p class="row between">
              <b class="big">{usd(spentOf(purse))}</b>
              <span class="dim">of {capUsd(purse.cap)}</span>
            </p>
            <Purse values={purse} size="large" />
          </div>
        )}
      </div>
    </section>
  );
}
