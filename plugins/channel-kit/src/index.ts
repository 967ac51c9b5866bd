export { reasonOf } from './base/reason.js';
export { type ChannelEntry, openChannel } from './channel.js';
export { imageTypeOf, MAX_IMAGE } from './chats/images.js';
export { type ChannelOptions, channelOptions, checkChannel, groupsOption } from './platform/options.js';
export type * from './platform/platform.js';
export { idFault } from './receiving/incoming.js';
