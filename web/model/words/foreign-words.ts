import { visibleLine, type ForeignCallView } from "../../../src/kernel/index.ts";

/** A path that a call names. */
interface CallPlace {
  readonly path: string;
  readonly isOutside: boolean;
}

/**
 * Returns the paths that a call of a hired program names, without duplicates. Paths outside of its folder come
 * first.
 */
export function callPlaces({ locations = [], diffs = [] }: ForeignCallView): readonly CallPlace[] {
  const places = new Map<string, CallPlace>();
  for (const { path, isOutside } of [...locations, ...diffs])
    places.set(path, { path, isOutside: isOutside || (places.get(path)?.isOutside ?? false) });
  return [...places.values()].toSorted((one, other) => Number(other.isOutside) - Number(one.isOutside));
}

/**
 * Describes what happens to an option that a hired program offers. Reeve answers only for one call, and remembers
 * approvals itself.
 */
export function optionWords(kind: string): string {
  switch (kind) {
    case "allow_once":
      return "given if you allow it";
    case "reject_once":
      return "given if you deny it";
    case "allow_always":
    case "reject_always":
      return "never given: Reeve remembers by itself";
    default:
      return visibleLine(`${kind}, which Reeve does not know: never given`);
  }
}

/** Whether an approval can have an effect. For this, the program must offer an approval for one call. */
export function canBeAllowed({ options }: ForeignCallView): boolean {
  return options === undefined || options.some(({ kind }) => kind === "allow_once");
}
