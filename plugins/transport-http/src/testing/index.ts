/** The test kit of the HTTP extension points, for plugins that contribute routes or upgrades. */
export { type HttpRouteContractOptions, httpRouteContract } from './http-route.js';
export { type HttpUpgradeContractOptions, httpUpgradeContract } from './http-upgrade.js';
export { testHttpRequest } from './test-http-request.js';
