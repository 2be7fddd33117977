import type { MeterTone, BudgetUse } from "../model/money.ts";
import type { JSX } from "preact";
import { capUsd, usd } from "../base/format.ts";

interface MeterProps {
  readonly values: BudgetUse;
  readonly size?: "small" | "large";
  readonly tone?: MeterTone;
}

/**
 * Shows one budget as a bar: spent is solid, reserved is hatched, unreported is red, the rest is empty. The right
 * edge is the whole budget.
 */
export function BudgetMeter({ values, size, tone = "live" }: MeterProps): JSX.Element {
  const { own, team, lost, held, cap } = values;
  const used = own + team + lost + held;
  const whole = cap ?? (used === 0 ? 1 : used);
  const share = (part: number): { readonly width: string } => ({
    width: `${whole === 0 ? 0 : Math.min(100, (100 * part) / whole)}%`,
  });
  const state =
    cap === null || cap === 0 ? "" : used >= cap * 0.9999 ? " full" : used >= cap * 0.9 ? " warn" : "";
  return (
    <span
      class={`meter ${tone}${size === undefined ? "" : ` ${size}`}${state}`}
      role="img"
      aria-label={meterText(values)}
    >
      {own > 0 && <i class="own" style={share(own)} />}
      {team > 0 && <i class="team" style={share(team)} />}
      {lost > 0 && <i class="lost" style={share(lost)} />}
      {held > 0 && <i class="held" style={share(held)} />}
    </span>
  );
}

/** Describes the budget meter in a sentence, for people who cannot see the bar. */
function meterText({ own, team, lost, held, cap }: BudgetUse): string {
  const parts = [`${usd(own + team + lost)} ${cap === null ? "" : `of ${capUsd(cap)} `}spent`];
  if (lost > 0) parts.push(`${usd(lost)} of it unreported`);
  if (held > 0) parts.push(`${usd(held)} held`);
  if (cap === null) parts.push("no limit");
  return parts.join(", ");
}
