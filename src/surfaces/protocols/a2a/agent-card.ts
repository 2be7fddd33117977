import type { JsonObject } from "../../../kernel/index.ts";
import { packageVersion } from "../../../assembly/package-root.ts";
import type { AgentInfo } from "../../http/served-agents.ts";
import { a2aVersion } from "./a2a-schema.ts";

interface CardOptions {
  /** Address of the JSON-RPC interface of the agent. */
  readonly url: string;
  readonly needsToken: boolean;
  /** Whether the card contains what the server tells only callers with a token. */
  readonly isExtended: boolean;
}

const modes = ["text/plain", "application/json"];

/**
 * The card of an agent. The card that needs no token says how to reach the agent, and nothing that its author wrote; the
 * extended card also has its description, tools and skills.
 */
export function agentCard(agent: AgentInfo, { url, needsToken, isExtended }: CardOptions): JsonObject {
  const { name, description, tools, skills, inputSchema } = agent;
  const plain = `The agent ${name}. Its extended card describes it.`;
  const told = isExtended ? (description ?? `The agent ${name}.`) : plain;
  const tags = isExtended && tools.length > 0 ? tools : ["agent"];
  const own = { id: name, name, description: told, tags };
  const others = isExtended
    ? skills.map((skill) => ({ id: `${name}/${skill}`, name: skill, description: skill, tags: ["skill"] }))
    : [];
  return {
    name,
    description: told,
    version: packageVersion(),
    supportedInterfaces: [{ url, protocolBinding: "JSONRPC", protocolVersion: a2aVersion }],
    capabilities: {
      streaming: true,
      pushNotifications: false,
      extendedAgentCard: true,
    },
    defaultInputModes: inputSchema === null ? modes : ["application/json"],
    defaultOutputModes: modes,
    skills: [own, ...others],
    ...(needsToken && {
      securitySchemes: {
        token: {
          httpAuthSecurityScheme: { scheme: "Bearer", description: "A token of reeve token create." },
        },
      },
      securityRequirements: [{ schemes: { token: { list: [] } } }],
    }),
  };
}

/**
 * The address of a path of this server, as the client of a request reaches it. A proxy that ends TLS says so in a header. A
 * client that forges the header changes only its own answer.
 */
export function addressOf(request: Request, path: string): string {
  const url = new URL(path, request.url);
  if (request.headers.get("x-forwarded-proto") === "https") url.protocol = "https:";
  return url.href;
}
