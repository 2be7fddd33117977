import fc from "fast-check";
import { expect, test } from "vitest";
import {
  deepFreeze,
  openLedger,
  stepLedger,
  type Ledger,
  type LedgerCommand,
} from "../../../src/kernel/index.ts";
import { propertyRuns } from "../../effort.ts";
import { anyCommand, anyOpen } from "./ledger-commands.ts";
import { LedgerOracle } from "./ledger-oracle.ts";
import { brokenPromises, same } from "./money-promises.ts";

const trees = fc.array(fc.nat(2 ** 31 - 1), { minLength: 5, maxLength: 5 });
const seeds = fc.array(fc.nat(2 ** 31 - 1), { maxLength: 25 });

test("B1-B6: after every random command the ledger equals a simple model of it and keeps the money promises", () => {
  const property = fc.property(fc.boolean(), trees, seeds, fc.nat(30), (refuses, tree, rest, reload) => {
    const unknownPrice = refuses ? "refuse" : "ignore";
    const oracle = new LedgerOracle(unknownPrice);
    const [done, problems]: [LedgerCommand[], string[]] = [[], []];
    let [before, overran] = [openLedger(unknownPrice), false];
    for (const [at, seed] of [...tree, ...rest].entries()) {
      const command = at < tree.length ? anyOpen(at, seed) : anyCommand(seed, before);
      const { state, outcome } = stepLedger(deepFreeze(before), deepFreeze(command));
      const { passes: _passes, ...view } = state;
      const told = { outcome: oracle.apply(command), view: oracle.view() };
      overran ||= outcome.overrun !== null;
      done.push(command);
      problems.push(...brokenPromises(before, state, overran));
      if (!same({ outcome, view }, told)) problems.push(JSON.stringify({ done, outcome, view, told }));
      if (problems.length > 0) break;
      before = at === reload ? (JSON.parse(JSON.stringify(state)) as Ledger) : state;
    }
    expect(problems).toEqual([]);
  });
  fc.assert(property, { numRuns: propertyRuns(20_000) });
});
