import { once } from "node:events";
import { createServer } from "node:http";
import { connect, type AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { expect, it, onTestFinished } from "vitest";
import { answerNode } from "../../../src/capabilities/mcp/node-http.ts";

type Answer = Parameters<typeof answerNode>[2];

/** Serves `answer` over HTTP. Returns a function that sends raw text and returns the status line of the response. */
async function served(answer: Answer) {
  const errors: unknown[] = [];
  const http = createServer((incoming, outgoing) => {
    answerNode(incoming, outgoing, answer).catch((error: unknown) => errors.push(error));
  }).listen(0, "127.0.0.1");
  await once(http, "listening");
  onTestFinished(() => {
    http.closeAllConnections();
    http.close();
  });
  const { port } = http.address() as AddressInfo;
  const send = async (lines: readonly string[]): Promise<string> => {
    const socket = connect(port, "127.0.0.1");
    socket.end([...lines, "connection: close", "", ""].join("\r\n"));
    return (await text(socket)).split("\r\n", 1)[0] ?? "";
  };
  return { port, send, errors };
}

const asked: Request[] = [];
const echo: Answer = async (request) => {
  asked.push(request);
  return new Response(request.url);
};

it.for<[string, readonly string[], string]>([
  ["TRACE", ["TRACE / HTTP/1.1", "host: localhost"], "HTTP/1.1 405 Method Not Allowed"],
  ["a Host with credentials", ["GET / HTTP/1.1", "host: a:b@localhost"], "HTTP/1.1 400 Bad Request"],
  ["a Host that is no host name", ["GET / HTTP/1.1", "host: ["], "HTTP/1.1 400 Bad Request"],
  ["a Host with spaces", ["GET / HTTP/1.1", "host: a b"], "HTTP/1.1 400 Bad Request"],
  ["a Host with an invalid port", ["GET / HTTP/1.1", "host: localhost:99999"], "HTTP/1.1 400 Bad Request"],
  ["a target that is no path", ["OPTIONS * HTTP/1.1", "host: localhost"], "HTTP/1.1 400 Bad Request"],
  ["no Host", ["GET / HTTP/1.1"], "HTTP/1.1 400 Bad Request"],
  ["a valid request", ["GET / HTTP/1.1", "host: localhost"], "HTTP/1.1 200 OK"],
])("answerNode() answers a request with %s", async ([, lines, status]) => {
  const { send, errors } = await served(echo);
  expect(await send(lines)).toBe(status);
  expect(errors).toEqual([]);
});

it("answerNode() keeps the host of a path that starts with two slashes", async () => {
  asked.length = 0;
  const { send } = await served(echo);
  await send(["GET //evil.example/x HTTP/1.1", "host: localhost"]);
  expect(asked.map(({ url }) => url)).toEqual(["http://localhost//evil.example/x"]);
});

it("answerNode() answers 500 if the handler throws, and reports the error", async () => {
  const { send, errors } = await served(() => Promise.reject(new Error("no store")));
  expect(await send(["GET / HTTP/1.1", "host: localhost"])).toBe("HTTP/1.1 500 Internal Server Error");
  expect(errors).toMatchObject([{ message: "no store" }]);
});

it("answerNode() cancels the response stream if the caller disconnects, and reports no error", async () => {
  const cancelled = Promise.withResolvers<void>();
  const { port, errors } = await served(async () => {
    const body = new ReadableStream({
      start: (controller) => controller.enqueue(new TextEncoder().encode("first")),
      cancel: () => cancelled.resolve(),
    });
    return new Response(body);
  });
  const socket = connect(port, "127.0.0.1");
  socket.write("GET / HTTP/1.1\r\nhost: localhost\r\n\r\n");
  await once(socket, "data");
  socket.destroy();
  await cancelled.promise;
  expect(errors).toEqual([]);
});

it("answerNode() passes the remote address of the connection", async () => {
  let address: string | undefined;
  const { send } = await served(async (_request, { remoteAddress }) => {
    address = remoteAddress;
    return new Response(null, { status: 202 });
  });
  expect(await send(["GET / HTTP/1.1", "host: localhost"])).toBe("HTTP/1.1 202 Accepted");
  expect(address).toBe("127.0.0.1");
});
