import { describeValue, Fault, type Engine, type Records } from "../../kernel/index.ts";

const record = { namespace: "engine", key: "kind" } as const;
const validKind = /^[a-z][a-z0-9-]{0,63}$/;

/**
 * G5: records the kind of the engine that drives the runs of a store. Throws `engine_mismatch` if another kind is
 * recorded, because two kinds would each wake and drive the same runs.
 */
export async function recordEngineKind(records: Records, { kind }: Engine): Promise<void> {
  if (kind === null) return;
  if (typeof kind !== "string" || !validKind.test(kind))
    throw new Fault(
      "invalid_argument",
      `invalid kind ${describeValue(kind)} of the engine: expected 1 to 64 lower-case letters, digits and -, starting with a letter`,
    );
  const found = await records.get(record);
  const current = found ?? (await putKind(records, kind));
  if (current === undefined || current.value === kind) return;
  throw new Fault(
    "engine_mismatch",
    `the engine ${JSON.stringify(current.value)} drives the runs of this store, and this runtime has the engine ${JSON.stringify(kind)}: open the runtime with the same engine, or with another store`,
    { details: { recorded: current.value, engine: kind } },
  );
}

/** Returns the kind that another process has recorded first, if one has. */
async function putKind(records: Records, kind: string): ReturnType<Records["get"]> {
  const written = await records.put({ ...record, value: kind }, "absent");
  return written.kind === "stored" ? undefined : written.current;
}
