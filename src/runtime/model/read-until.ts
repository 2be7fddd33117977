/**
 * Reads items until `take` returns a value other than `undefined`, and resolves to that value. Resolves to `undefined`
 * after the last item. Like `for await` with a `return` in its body, but without an async function: a stream has
 * thousands of deltas, and the suspension of an async function costs more than handling a delta. Bench: `loop`, row "a
 * streamed delta, against reading the model's stream bare".
 */
export function readUntil<Item, Result>(
  items: AsyncIterable<Item>,
  take: (item: Item) => Result | undefined,
): Promise<Result | undefined> {
  const iterator = items[Symbol.asyncIterator]();
  // Looked up once, as `for await` does: the generators of two functions have different prototypes, so that V8 would
  // treat a lookup per item as megamorphic.
  // oxlint-disable-next-line typescript/unbound-method -- called by `call`
  const { next } = iterator;
  return new Promise((resolve, reject) => {
    const onItem = (read: IteratorResult<Item>): void => {
      try {
        if (read.done === true) {
          resolve(undefined);
          return;
        }
        const taken = take(read.value);
        if (taken === undefined) next.call(iterator).then(onItem, reject);
        else close(iterator).then(() => resolve(taken), reject);
      } catch (error) {
        // The error of `take` is more useful than an error of closing the iterator.
        const fail = (): void => reject(error);
        close(iterator).then(fail, fail);
      }
    };
    next.call(iterator).then(onItem, reject);
  });
}

async function close(iterator: AsyncIterator<unknown>): Promise<void> {
  await iterator.return?.();
}
