/** The platforms on which a person reads answers and for which workspaces have rules about the form of answers. */
export const platforms = ["terminal", "web", "telegram", "discord", "slack", "email"] as const;

export type Platform = (typeof platforms)[number];

/**
 * Where the input of a run came from: a platform, a platform and an id such as `telegram:4711`, or a name of the caller's
 * own such as `mcp`. A name that is not a platform has no rules about the form of answers.
 */
export type Channel = Platform | `${Platform}:${string}` | (string & Record<never, never>);

/** Returns the platform of a channel. `null` is the terminal. `undefined` for a name that is not a platform. */
export function platformOf(channel: Channel | null): Platform | undefined {
  const [name = ""] = (channel ?? "terminal").toLowerCase().split(/[:/]/u);
  return platforms.find((platform) => platform === name);
}
