import {
  stateRecord,
  type Commit,
  type JsonValue,
  type RecordKey,
  type RunRecord,
} from "../../kernel/index.ts";

/** L19: the change of the record with the state of a key. */
export interface StateChange {
  readonly place: RecordKey;
  /** The new state. `undefined` removes the record. */
  readonly value: JsonValue | undefined;
}

/** L19: returns the last change that a commit makes to the state of its run's key. `undefined` if there is none. */
export function stateChangeIn(
  { events }: Commit,
  { tenantId }: Pick<RunRecord, "tenantId">,
): StateChange | undefined {
  if (events === undefined) return undefined;
  let change: StateChange | undefined;
  for (const event of events) {
    if (event.type !== "state_changed") continue;
    const { object: name, key, state: value } = event.data;
    change = { place: { ...stateRecord({ name, key }), tenantId }, value };
  }
  return change;
}
