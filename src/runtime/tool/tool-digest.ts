import { canonicalJson, type Hash, type Tool } from "../../kernel/index.ts";

/**
 * Returns the digest of a tool's server, name, description and schema. An approval is bound to it. It is not part of a
 * step's digest (J4), so a changed tool does not stop a replay. It is not cached, because a tool object may change.
 */
export function toolDigest(tool: Tool, hash: Hash): string {
  const { represents } = tool;
  if (represents !== undefined && represents !== tool) return toolDigest(represents, hash);
  const { origin = null, name, description, inputSchema } = tool;
  return hash(canonicalJson({ origin, name, description, inputSchema }));
}
