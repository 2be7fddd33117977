import {
  ClientCredentialsProvider,
  CrossAppAccessProvider,
  PrivateKeyJwtProvider,
  requestJwtAuthorizationGrant,
  type OAuthClientProvider,
} from "@modelcontextprotocol/client";
import { openRuntime } from "../../src/entries/index.ts";
import { mcpServers, type HttpAuth } from "../../src/assembly/mcp.ts";
import { caller } from "./live-servers.ts";

type Stored = Awaited<ReturnType<OAuthClientProvider["tokens"]>>;
type Registered = Awaited<ReturnType<OAuthClientProvider["clientInformation"]>>;

const redirectUrl = "http://localhost:3000/callback";

/** Signs in without a person: the suite's sign-in page redirects at once. */
class HeadlessSignIn implements OAuthClientProvider {
  readonly redirectUrl = redirectUrl;
  readonly clientMetadataUrl = "https://conformance-test.local/client-metadata.json";
  readonly clientMetadata = {
    client_name: "reeve-conformance",
    redirect_uris: [redirectUrl],
    grant_types: ["authorization_code", "refresh_token"],
    response_types: ["code"],
  };
  #registered: Registered;
  #tokens: Stored;
  #verifier = "";
  #back = Promise.withResolvers<URLSearchParams>();

  constructor(registered?: Registered) {
    this.#registered = registered;
  }

  readonly callback = (): Promise<URLSearchParams> => this.#back.promise;

  clientInformation(): Registered {
    return this.#registered;
  }

  saveClientInformation(registered: NonNullable<Registered>): void {
    this.#registered = registered;
  }

  tokens(): Stored {
    return this.#tokens;
  }

  saveTokens(tokens: NonNullable<Stored>): void {
    this.#tokens = tokens;
  }

  async redirectToAuthorization(page: URL): Promise<void> {
    this.#back = Promise.withResolvers();
    const { headers } = await fetch(page, { redirect: "manual" });
    this.#back.resolve(new URL(headers.get("location") ?? "").searchParams);
  }

  saveCodeVerifier(verifier: string): void {
    this.#verifier = verifier;
  }

  codeVerifier(): string {
    return this.#verifier;
  }
}

function signIn(scenario: string, context: Readonly<Record<string, string>>): HttpAuth | undefined {
  const given = (name: string): string => context[name] ?? "";
  if (!scenario.startsWith("auth/")) return undefined;
  switch (scenario) {
    case "auth/client-credentials-jwt": {
      const algorithm = context["signing_algorithm"] ?? "ES256";
      const privateKey = given("private_key_pem");
      return { provider: new PrivateKeyJwtProvider({ clientId: given("client_id"), privateKey, algorithm }) };
    }
    case "auth/client-credentials-basic":
      return {
        provider: new ClientCredentialsProvider({
          clientId: given("client_id"),
          clientSecret: given("client_secret"),
        }),
      };
    case "auth/cross-app-access-complete-flow":
      return {
        provider: new CrossAppAccessProvider({
          clientId: given("client_id"),
          clientSecret: given("client_secret"),
          assertion: async ({ authorizationServerUrl, resourceUrl, fetchFn }) => {
            const { jwtAuthGrant } = await requestJwtAuthorizationGrant({
              tokenEndpoint: given("idp_token_endpoint"),
              audience: authorizationServerUrl,
              resource: resourceUrl,
              idToken: given("idp_id_token"),
              clientId: given("idp_client_id"),
              fetchFn,
            });
            return jwtAuthGrant;
          },
        }),
      };
    case "auth/pre-registration": {
      const [client_id, client_secret] = [given("client_id"), given("client_secret")];
      const provider = new HeadlessSignIn({ client_id, client_secret });
      return { provider, callback: provider.callback };
    }
    default: {
      const provider = new HeadlessSignIn();
      // The suite's server of that revision names another issuer than its own address.
      const skipIssuerCheck = scenario === "auth/2025-03-26-oauth-metadata-backcompat";
      return { provider, callback: provider.callback, skipIssuerCheck };
    }
  }
}

/** What the suite tells its client. */
export interface ClientOrders {
  /** Address of the suite's server. */
  readonly url: string;
  readonly scenario: string;
  readonly context: Readonly<Record<string, string>>;
}

/** Connects to the server of a scenario and calls each of its tools once. Returns the results as lines of text. */
export async function playClient({ url, scenario, context }: ClientOrders): Promise<string> {
  const auth = signIn(scenario, context);
  const mcp = mcpServers({ server: { url, ...(auth && { auth }) } }, { backoff: { attempts: 1 } });
  const runtime = await openRuntime();
  const lines: string[] = [];
  try {
    const tools = await mcp.tools();
    const agent = caller(tools);
    for (const { name, origin } of tools) {
      const input = origin?.name === "add_numbers" ? { a: 5, b: 3 } : {};
      const run = await runtime.submit(agent, { toolName: name, input });
      for await (const event of run.events({ types: ["approval_request", "run_end"] })) {
        // A field that the person leaves empty gets the server's default.
        if (event.type === "approval_request")
          await run.approve(event.data.approvalId, { decision: "approved", input: {} });
      }
      lines.push(`${name}: ${JSON.stringify((await run.result()).output)}\n`);
    }
  } finally {
    await mcp.close();
    await runtime.close();
  }
  return lines.join("");
}
