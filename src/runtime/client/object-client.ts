import {
  describeValue,
  Fault,
  formatAgentId,
  formatRunId,
  objectCallKinds,
  objectStateKinds,
  optionTable,
  requireObject,
  requireObjectKey,
  stateRecord,
  submitKinds,
  withKnownHandlers,
  workflowOutput,
  type HostedObject,
  type JsonValue,
  type ObjectCall,
  type ObjectCallOptions,
  type ObjectClient,
  type ObjectOwner,
  type ObjectStatePage,
  type ObjectStateQuery,
  type OptionKinds,
  type Records,
  type RunHandle,
  type RunId,
  type StartOptions,
  type TenantScope,
  type WorkflowResult,
} from "../../kernel/index.ts";
import { idDigest } from "../process/id-digest.ts";
import { sha256 } from "../process/sha256.ts";

const callTable = optionTable(objectCallKinds);
const stateTable = optionTable(objectStateKinds);
const ownerTable = optionTable({
  tenantId: submitKinds.tenantId,
  userId: submitKinds.userId,
} satisfies OptionKinds<ObjectOwner>);

/** The parts of a runtime that the client of an object uses. */
export interface ObjectPort {
  readonly records: Pick<Records, "get">;
  /** Throws if the runtime is closed. */
  readonly check: () => void;
  /** Returns the tenant and the user of the calls. */
  readonly own: (owner: ObjectOwner) => ObjectOwner;
  readonly start: (call: ObjectCall, options: StartOptions) => Promise<RunHandle<WorkflowResult<unknown>>>;
}

/** L19: creates the client of one key of an object, for code outside a run. */
export function objectClient<State, Handlers>(
  { records, check, own, start }: ObjectPort,
  object: HostedObject<State, Handlers>,
  key: string,
  given: ObjectOwner,
): ObjectClient<State, Handlers> {
  requireObject("object()", object);
  ownerTable.read("object()", given);
  const owner = own(given);
  const { name } = object;
  requireObjectKey(`object ${name}`, key);
  const { tenantId = null } = owner;
  const send = async (
    handler: string,
    input: JsonValue | undefined,
    options: ObjectCallOptions = {},
  ): Promise<RunHandle<WorkflowResult<unknown>>> => {
    const { id, ...more } = callTable.read(`${handler}() of object ${name}`, options);
    const runId = id === undefined ? {} : { runId: objectCallId(tenantId, { name, key }, id) };
    return start({ handler, key, input: input ?? null }, { ...more, ...owner, ...runId });
  };
  type Args = [input?: JsonValue, options?: ObjectCallOptions];
  const methods = object.handlerNames.map((handler) => [
    handler,
    async (...args: Args) => {
      const run = await send(handler, ...args);
      return workflowOutput(`${handler}() of object ${name}`, await run.result());
    },
  ]);
  const sends = object.handlerNames.map((handler) => [handler, (...args: Args) => send(handler, ...args)]);
  return withKnownHandlers(object, `runtime.object(${name}, key)`, {
    ...(Object.fromEntries(methods) as object),
    state: async () => {
      check();
      return object.readState((await records.get({ ...stateRecord({ name, key }), tenantId }))?.value);
    },
    send: withKnownHandlers(object, `runtime.object(${name}, key).send`, Object.fromEntries(sends) as object),
  } as ObjectClient<State, Handlers>);
}

/** S6: returns the stored states of an object, in the tenant of the scope. */
export async function readStates(
  records: Pick<Records, "get" | "list">,
  name: string,
  query: ObjectStateQuery,
  scope: TenantScope | undefined,
): Promise<ObjectStatePage> {
  const { key, tenantId: wanted, after, limit } = stateTable.read("objectStates()", query);
  formatAgentId({ name });
  if (scope?.userId !== undefined)
    throw new Fault(
      "permission_denied",
      "the states of objects belong to the whole tenant; read them in a view of the tenant without a user",
    );
  if (scope !== undefined && wanted !== undefined && wanted !== scope.tenantId)
    throw new Fault(
      "invalid_argument",
      `invalid tenantId ${describeValue(wanted)} of objectStates(): this view is for ${describeValue(scope.tenantId)}; omit tenantId`,
    );
  const tenantId = scope?.tenantId ?? wanted ?? null;
  if (key !== undefined) {
    requireObjectKey(`object ${name}`, key);
    const found = await records.get({ ...stateRecord({ name, key }), tenantId });
    return { states: found === undefined ? [] : [{ key, state: found.value }], next: null };
  }
  const { namespace, key: prefix } = stateRecord({ name, key: "" });
  const page = await records.list({ namespace, prefix, tenantId, after, limit });
  return {
    states: page.records.map((each) => ({
      key: decodeURIComponent(each.key.slice(prefix.length)),
      state: each.value,
    })),
    next: page.next,
  };
}

/** Returns the run id for a call of an object with an id. Such ids belong to a key of an object, within its tenant. */
export function objectCallId(
  tenantId: string | null,
  { name, key }: { readonly name: string; readonly key: string },
  id: string,
): RunId {
  return formatRunId(idDigest(JSON.stringify(["object", tenantId, name, key, id]), sha256));
}
