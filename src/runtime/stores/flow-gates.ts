import type { RunFlow, RunRecord } from "../../kernel/index.ts";
import { tenantText } from "./codec/stored-run.ts";

/** L17: a gate, which is a limit that a run must pass before it is ready. */
export interface Gate {
  /** Identifies the limit among those of all tenants. */
  readonly id: string;
  readonly limit: number;
  /** Length of the time span of a rate limit, in milliseconds. `null` for a limit of concurrency. */
  readonly perMs: number | null;
  /** L20: time at which the run stops collecting starts, in epoch milliseconds. Absent for other gates. */
  readonly dueAt?: number;
}

const noGates: readonly Gate[] = [];

/** Returns the limits (gates) of a run, in the order in which the run passes them. */
export function gatesOf({
  tenantId,
  flow,
}: Pick<RunRecord, "tenantId"> & { readonly flow?: RunFlow }): readonly Gate[] {
  if (flow === undefined) return noGates;
  const { concurrency, rate, object, collect } = flow;
  const idOf = (kind: string, { name, key }: { readonly name: string; readonly key: string }): string =>
    JSON.stringify([kind, tenantText(tenantId), name, key]);
  return [
    ...(collect === undefined
      ? noGates
      : [
          {
            id: JSON.stringify(["collect", tenantText(tenantId), collect.userId, collect.name, collect.key]),
            limit: 1,
            perMs: null,
            dueAt: collect.dueAt,
          },
        ]),
    // A call of an object has no other limits: a run holds one place.
    ...(object === undefined || object.isShared === true
      ? noGates
      : [{ id: idOf("object", object), limit: 1, perMs: null }]),
    ...(concurrency === undefined
      ? noGates
      : [{ id: idOf("concurrency", concurrency), limit: concurrency.limit, perMs: null }]),
    ...(rate === undefined ? noGates : [{ id: idOf("rate", rate), limit: rate.limit, perMs: rate.perMs }]),
  ];
}

/**
 * Returns the limit (gate) in which a run keeps its place until it ends. `undefined` if it has no limit of
 * concurrency.
 */
export function slotOf(gates: readonly Gate[]): Gate | undefined {
  return gates.find(({ perMs, dueAt }) => perMs === null && dueAt === undefined);
}
