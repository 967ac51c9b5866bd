type Headers = Readonly<Record<string, string>>;

/** Makes the headers of every request. @param keyHeader the header that carries the key. */
export function defaultHeaders(apiKey: string | undefined, keyHeader: 'authorization' | 'api-key', configured: Headers): Headers {
  return mergeHeaders(
    {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      'accept-encoding': 'identity',
      'user-agent': 'plugboard',
      ...(apiKey ? { [keyHeader]: keyHeader === 'authorization' ? `Bearer ${apiKey}` : apiKey } : {}),
    },
    configured,
  );
}

/** Adds headers, replacing those of the same name. Lower case, so that none is sent twice. */
export function mergeHeaders(headers: Headers, more: Headers): Headers {
  let merged: Record<string, string> | undefined;
  for (const name in more) {
    merged ??= { ...headers };
    merged[name.toLowerCase()] = more[name] as string;
  }
  return merged ?? headers;
}
