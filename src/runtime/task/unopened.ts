import { Fault } from "../../kernel/index.ts";

/**
 * Returns a placeholder for an object that code which only replays does not get, such as a connection. The code may
 * pass it on. Any other use throws `unsupported`, because only the bodies of steps may use the object.
 */
export function unopened(what: string): unknown {
  const refuse = (): never => {
    throw new Fault(
      "unsupported",
      `${what} was used outside the body of a step: a replay check opens nothing; move the use into ctx.step()`,
    );
  };
  return new Proxy(() => undefined, {
    // A promise that resolves to the object asks for `then`, and a printer for symbols.
    get: (_, key) => (key === "then" || typeof key === "symbol" ? undefined : refuse()),
    set: refuse,
    apply: refuse,
    construct: refuse,
  });
}
