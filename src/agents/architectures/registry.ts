import { Fault, type Architecture } from "../../kernel/index.ts";
import { react } from "./react.ts";

/** Those that need nothing to be told. */
const builtIn: Readonly<Record<string, () => Architecture>> = { react };

const registered = new Map<string, () => Architecture>();

/** Makes an architecture of your own known by a name, for `new Agent({ architecture: name })`. */
export function registerArchitecture(name: string, make: () => Architecture): void {
  if (Object.hasOwn(builtIn, name) || registered.has(name))
    throw new Fault("already_exists", `there is an architecture ${name} already: choose another name`);
  registered.set(name, make);
}

export function architectureNamed(name: string): Architecture {
  const make = Object.hasOwn(builtIn, name) ? builtIn[name] : registered.get(name);
  if (make !== undefined) return make();
  const known = [...Object.keys(builtIn), ...registered.keys()].join(", ");
  throw new Fault(
    "not_found",
    `there is no architecture ${name}; there are: ${known}. Register yours with registerArchitecture`,
  );
}
