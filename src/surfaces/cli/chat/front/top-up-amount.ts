import { Fault, visibleLine } from "../../../../kernel/index.ts";
import type { TopUpName } from "../../../view/top-up-offer.ts";

/** Example amounts in the form that a person may type, shown in a question. */
export const amountExamples = "0.50 (dollars), 5 turns, 2000 tokens or 10 min";

/**
 * For each unit: the limit to which an amount in this unit is added, and the factor from the unit to the limit's
 * own unit.
 */
const units: Readonly<Record<string, readonly [name: TopUpName, factor: number]>> = {
  "": ["maxCostUsd", 1],
  usd: ["maxCostUsd", 1],
  $: ["maxCostUsd", 1],
  dollar: ["maxCostUsd", 1],
  turn: ["maxTurns", 1],
  token: ["maxTokens", 1],
  s: ["deadlineMs", 1_000],
  second: ["deadlineMs", 1_000],
  m: ["deadlineMs", 60_000],
  min: ["deadlineMs", 60_000],
  minute: ["deadlineMs", 60_000],
  h: ["deadlineMs", 3_600_000],
  hour: ["deadlineMs", 3_600_000],
};

/** Parses an amount that a person has written: `0.50`, `$0.50`, `5 turns`, `2,000 tokens`, `10 min`. */
export function amountOf(text: string): { readonly [Name in TopUpName]?: number } {
  const match = /^\$?\s*(?<amount>(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?|\.\d+)\s*(?<unit>[a-z]*|\$)$/iu.exec(
    text.trim(),
  );
  const { amount = "", unit = "" } = match?.groups ?? {};
  const known = units[unit.toLowerCase()] ?? units[unit.toLowerCase().replace(/(?<=..)s$/u, "")];
  const value = Number(amount.replaceAll(",", ""));
  const isWhole = known?.[0] === "maxCostUsd" || known?.[0] === "deadlineMs" || Number.isInteger(value);
  if (match === null || known === undefined || !isWhole || !(value > 0))
    throw new Fault(
      "invalid_argument",
      `invalid amount ${JSON.stringify(visibleLine(text))}: expected dollars such as 0.50, or a number of turns, tokens, s, min or h`,
    );
  const [name, factor] = known;
  return { [name]: value * factor };
}
