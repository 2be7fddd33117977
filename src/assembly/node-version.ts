/**
 * Oldest supported version of each supported Node release line. Later lines are also supported. Must agree with
 * `engines` in package.json.
 */
const oldest: readonly (readonly [major: number, minor: number])[] = [
  [22, 19],
  [24, 5],
];

/** Returns why Reeve cannot run on a version of Node, or `undefined` if it can. */
export function unsupportedNode(version: string): string | undefined {
  const [major = 0, minor = 0] = version.split(".").map(Number);
  const line = oldest.find(([supported]) => supported === major);
  const isSupported = line === undefined ? major > 24 : minor >= line[1];
  return isSupported
    ? undefined
    : `Reeve needs Node 22.19 or a later 22, or Node 24.5 or newer, and this is Node ${version}; install one of these`;
}
