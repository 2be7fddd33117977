import { Fault, describeValue, nearestName } from "../../kernel/index.ts";
import type { ProgramLimits } from "../gateway/gateway.ts";

/** A known agent: how it is started, and what it needs to work behind the gateway. */
export interface Preset {
  /** The npm package that brings the program. */
  readonly package: string;
  readonly command: readonly [string, ...string[]];
  /** The wire of its model calls. Its token is refused on the others. */
  readonly wire: NonNullable<ProgramLimits["wire"]>;
  /** Variables for the process, besides those of the gateway. */
  readonly variables: (given: PresetValues) => Readonly<Record<string, string>>;
}

/** What the variables of a preset are made from. */
export interface PresetValues {
  /** The model that the agent shall use. `undefined`: the one that it chooses. */
  readonly model: string | undefined;
}

const known: Readonly<Record<string, Preset>> = {
  "claude-code": {
    package: "@agentclientprotocol/claude-agent-acp",
    command: ["claude-agent-acp"],
    wire: "anthropic",
    variables: ({ model }) => ({
      // The updater and the reports would call other addresses.
      DISABLE_AUTOUPDATER: "1",
      DISABLE_TELEMETRY: "1",
      DISABLE_ERROR_REPORTING: "1",
      ...(model !== undefined && { ANTHROPIC_MODEL: model }),
    }),
  },
};

/** The names of the presets. */
export const presetNames: readonly string[] = Object.keys(known);

/** Returns the preset of a name. Throws `invalid_argument`. */
export function presetOf(name: string, owner: string): Preset {
  const found = Object.hasOwn(known, name) ? known[name] : undefined;
  if (found !== undefined) return found;
  const nearest = nearestName(name, presetNames);
  const fix =
    nearest === undefined ? `expected one of ${presetNames.join(", ")}` : `use ${describeValue(nearest)}`;
  throw new Fault(
    "invalid_argument",
    `invalid preset ${describeValue(name)} of ${owner}: ${fix}; hire any other agent of the Agent Client Protocol with command`,
  );
}
