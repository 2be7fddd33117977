import {
  describeValue,
  Fault,
  is,
  optionTable,
  readProperty,
  startRunKinds,
  type HandleUpdateOptions,
  type OptionKinds,
  type SendOptions,
} from "../kernel/index.ts";

/** The options of `ctx.handleUpdate`. */
export const handleUpdateTable = optionTable({
  timeoutMs: is.number({ from: 0 }),
  validate: is.callback(),
} satisfies OptionKinds<HandleUpdateOptions>);

const { onParentEnd: _onParentEnd, ...sendKinds } = startRunKinds;
/** The options of `ctx.send` to a workflow. */
export const sendTable = optionTable(sendKinds satisfies OptionKinds<SendOptions>);

/** Throws if an update has no schema, or if a handler is not a function. */
export function requireHandler(update: unknown, handler: unknown): void {
  if (typeof readProperty(update, "readReply") !== "function")
    throw new Fault(
      "invalid_argument",
      `invalid update ${describeValue(update)} of ctx.handleUpdate(): expected an update; use update("name", { input, output }) of reeve/workflow`,
    );
  if (typeof handler !== "function")
    throw new Fault(
      "invalid_argument",
      `invalid handler ${describeValue(handler)} of ctx.handleUpdate(): expected a function; use ctx.handleUpdate(update, async (value) => ...)`,
    );
}

/** Returns the fault for a value that is not a valid branch. `name` is the name of the branch, if it has one. */
export function notABranch(caller: string, branch: unknown, name?: string): Fault {
  return new Fault(
    "invalid_argument",
    `invalid branch${name === undefined ? "" : ` ${name}`} of ${caller}: expected ${name === undefined ? "a function" : "a function or the handle of ctx.start()"}, not ${describeValue(branch)}; use async (branch) => branch.step(...)`,
  );
}

/** Returns the fault for an argument `branches` that is not an object with a function for each name. */
export function notBranches(caller: string, branches: unknown): Fault {
  return new Fault(
    "invalid_argument",
    `invalid branches ${describeValue(branches)} of ${caller}: expected an object with a function for each name; use ${caller.slice(0, -1)}{ first: async (branch) => branch.step(...) })`,
  );
}
