import { definePlugin, ToolSources } from '@plugboard/kernel';
import { Commands } from '@plugboard/kernel/contracts';
import { acceptCommand } from './accept-command.js';
import { AcceptedFile } from './accepted/accepted-file.js';
import { ToolPin } from './accepted/tool-pin.js';
import { checkConfig } from './check-config.js';
import { configSchema } from './config.js';
import { connectOverHttp, connectToProcess } from './connect.js';
import { McpTools } from './mcp-tools.js';

/** Where accepted tools are remembered, unless `acceptedFile` says otherwise. */
const ACCEPTED_FILE = './data/accepted-tools.json';

export default definePlugin({
  name: '@plugboard/tool-mcp',
  apiVersion: 1,
  summary: 'Offers the tools of an MCP server',
  configSchema,
  check: checkConfig,
  register(context) {
    const { config, entry, clock, log, ids, contribute, resolvePath } = context;
    const { url, forward, pin = false, acceptedFile = ACCEPTED_FILE } = config;
    const shared = { forward, isKeyed: config.keyed ?? false, entry, clock, log };
    if (url === undefined) {
      const tools = new McpTools({ ...shared, connect: connectToProcess(context), runs: 'here', jitter: () => 0 });
      contribute(ToolSources, tools);
      return tools;
    }
    const accepted = new AcceptedFile(resolvePath(acceptedFile), entry);
    const connect = connectOverHttp(context, url, {
      get: () => accepted.read().issuer,
      remember: (issuer) => accepted.accept({ issuer }),
    });
    const tools = new McpTools({
      ...shared,
      connect,
      runs: 'elsewhere',
      jitter: () => ids.fraction(),
      pin: pin ? new ToolPin({ accepted, entry, clock, log }) : undefined,
    });
    contribute(ToolSources, tools);
    contribute(Commands, acceptCommand(context, url, accepted), 'tools');
    return tools;
  },
});
