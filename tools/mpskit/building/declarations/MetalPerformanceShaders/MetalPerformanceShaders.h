// The part of Metal Performance Shaders that the ATen/mps headers use.
#pragma once

#include <Metal/Metal.h>

#pragma clang assume_nonnull begin

typedef NSArray<NSNumber*> MPSShape;

typedef NS_ENUM(uint32_t, MPSDataType) {
  MPSDataTypeInvalid = 0,
  MPSDataTypeFloatBit = 0x10000000,
  MPSDataTypeAlternateEncodingBit = 0x80000000,
  MPSDataTypeComplexBit = 0x01000000,
  MPSDataTypeFloat32 = MPSDataTypeFloatBit | 32,
  MPSDataTypeFloat16 = MPSDataTypeFloatBit | 16,
  MPSDataTypeBFloat16 = MPSDataTypeAlternateEncodingBit | MPSDataTypeFloat16,
  MPSDataTypeComplexFloat32 = MPSDataTypeFloatBit | MPSDataTypeComplexBit | 64,
  MPSDataTypeComplexFloat16 = MPSDataTypeFloatBit | MPSDataTypeComplexBit | 32,
  MPSDataTypeSignedBit = 0x20000000,
  MPSDataTypeInt8 = MPSDataTypeSignedBit | 8,
  MPSDataTypeInt16 = MPSDataTypeSignedBit | 16,
  MPSDataTypeInt32 = MPSDataTypeSignedBit | 32,
  MPSDataTypeInt64 = MPSDataTypeSignedBit | 64,
  MPSDataTypeUInt8 = 8,
  MPSDataTypeUInt16 = 16,
  MPSDataTypeUInt32 = 32,
  MPSDataTypeUInt64 = 64,
  MPSDataTypeBool = MPSDataTypeAlternateEncodingBit | 8,
};

@interface MPSCommandBuffer : NSObject <MTLCommandBuffer>
@property(readonly, nonatomic) id<MTLCommandBuffer> commandBuffer;
@property(readonly, nonatomic) id<MTLCommandBuffer> rootCommandBuffer;
+ (instancetype)commandBufferFromCommandQueue:(id<MTLCommandQueue>)commandQueue;
- (void)commitAndContinue;
@end

@interface MPSKernel : NSObject <NSCopying>
@property(readonly, retain, nonatomic) id<MTLDevice> device;
- (instancetype)initWithDevice:(id<MTLDevice>)device;
@end

@interface MPSNDArrayDescriptor : NSObject
@property(readwrite, nonatomic) MPSDataType dataType;
+ (instancetype)descriptorWithDataType:(MPSDataType)dataType shape:(NSArray<NSNumber*>*)shape;
@end

@interface MPSNDArray : NSObject
@property(readonly, nonatomic) MPSDataType dataType;
@property(readonly, nonatomic) NSUInteger numberOfDimensions;
- (instancetype)initWithBuffer:(id<MTLBuffer>)buffer
                        offset:(NSUInteger)offset
                    descriptor:(MPSNDArrayDescriptor*)descriptor API_AVAILABLE(macos(15.0));
@end

#pragma clang assume_nonnull end
