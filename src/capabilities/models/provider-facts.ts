import { installedAddress } from "./named-model.ts";
import { providerDirectory } from "./provider-directory.ts";

/** What this process has of a provider of the directory. Keys are named and never read out. */
export interface ProviderFacts {
  /** Name of the provider in `provider/model`. */
  readonly name: string;
  /** npm package of the provider. */
  readonly package: string;
  /** Whether the package is installed where Reeve is. */
  readonly isInstalled: boolean;
  /** Environment variables that may hold the key. Empty if the package finds its credentials itself. */
  readonly keys: readonly string[];
  /** The variable that holds the key. `null` if none is set. */
  readonly key: string | null;
  /** Whether a call without a key is refused. */
  readonly needsKey: boolean;
  /** Variable of the address, for a provider whose server may be anywhere. `null` for the others. */
  readonly addressVariable: string | null;
}

/** Returns what this process has of every provider. Loads no package. */
export function providerFacts(env: Readonly<Record<string, string | undefined>>): readonly ProviderFacts[] {
  return Object.entries(providerDirectory).map(
    ([name, { package: wanted, keys, keyless = false, server }]) => ({
      name,
      package: wanted,
      isInstalled: installedAddress(wanted) !== undefined,
      keys,
      key: keys.find((key) => env[key] !== undefined && env[key] !== "") ?? null,
      needsKey: keys.length > 0 && !keyless,
      addressVariable: server?.variable ?? null,
    }),
  );
}
